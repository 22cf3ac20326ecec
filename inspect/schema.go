package inspect

func (h *Handler) schema(c *call) (*page, error) {
	return &page{Name: "schema", Title: "Schema", Tab: "schema"}, nil
}

package inspect

func (h *Handler) sweep(c *call) (*page, error) {
	return &page{Name: "sweep", Title: "Sweep", Tab: "sweep"}, nil
}

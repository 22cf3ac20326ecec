package inspect

func (h *Handler) diff(c *call) (*page, error) { return c.empty("diff", "Changes") }

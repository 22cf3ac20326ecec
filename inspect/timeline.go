package inspect

func (h *Handler) timeline(c *call) (*page, error) { return c.empty("timeline", "Timeline") }

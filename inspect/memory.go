package inspect

func (h *Handler) memory(c *call) (*page, error) { return c.empty("memory", "Memory") }

package inspect

func (h *Handler) run(c *call) (*page, error) { return c.empty("run", "Run") }

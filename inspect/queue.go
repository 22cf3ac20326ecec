package inspect

func (h *Handler) queue(c *call) (*page, error) { return c.empty("queue", "Queue") }

package inspect

func (h *Handler) integrity(c *call) (*page, error) { return c.empty("integrity", "Integrity") }

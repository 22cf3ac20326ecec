package inspect

func (h *Handler) events(c *call) (*page, error) { return nil, errNoPage }

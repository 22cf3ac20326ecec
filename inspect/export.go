package inspect

func (h *Handler) export(c *call) (*page, error)   { return nil, errNoPage }
func (h *Handler) messages(c *call) (*page, error) { return nil, errNoPage }

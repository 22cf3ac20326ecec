package inspect

func (h *Handler) results(c *call) (*page, error) { return c.empty("results", "Results") }

func (h *Handler) result(c *call) (*page, error) { return c.empty("results", "Results") }

package inspect

func (h *Handler) conversation(c *call) (*page, error) {
	return c.empty("conversation", "Conversation")
}

package inspect

// actions returns the routes of the actions, and of the forms that ask for
// them. They have the right that the action needs.
func (h *Handler) actions() []route { return nil }

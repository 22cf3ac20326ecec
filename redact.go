package state

// Redact returns text with every value of a Secret field that this handle may
// read replaced by [SECRET]. Use the host's handle, which knows all secrets: an
// agent's handle leaves secrets that the agent may not read, although a tool
// may have put them into the text.
//
// Every string, sequence of bytes, number and key of a map in the value is
// masked, at any depth. It is also found if it is JSON-escaped or URL-, base64-
// or hex-encoded. A value of less than 6 bytes is masked only where it stands
// alone.
//
// Redact knows the values that are set now. Values that were replaced or
// deleted, and values that only a branch has, are not masked.
func (s *State) Redact(text string) string { return s.Redactor().Redact(text) }

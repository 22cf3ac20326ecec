package state

// Redact returns text with [SECRET] in place of every value of a Secret field
// that this handle may read. Use the host's handle, which knows all secrets. An
// agent's handle does not mask secrets that the agent may not read, although a
// tool may have put them into the text.
//
// Every string, sequence of bytes, number and key of a map in the value is
// masked, at any depth. It is also found if it is escaped as in JSON, Go, HTML
// or a URL, once or twice, or encoded in base64 or hexadecimal, also on several
// lines. A value of less than 6 bytes is masked only where it is not part of a
// word, and a number only where it is not part of a number with a fraction.
//
// As long as the text is JSON from its beginning, the result is JSON: a number
// that contains a secret becomes a string with the mask, and punctuation does
// not change. Redact is idempotent.
//
// Redact knows the values that are set now. Values that were replaced or
// deleted, and values that only a fork has, are not masked. A [Redactor] masks
// a fixed set of values.
func (s *State) Redact(text string) string { return s.Redactor().Redact(text) }

package state

import (
	"log/slog"
	"strconv"
)

// mask is shown in place of a secret.
const mask = "[SECRET]"

// Masked stands for the value of a Secret field where values are listed. It
// does not hold the value, and every write refuses it.
type Masked struct{}

// String returns "[SECRET]".
func (Masked) String() string { return mask }

// GoString returns "[SECRET]".
func (Masked) GoString() string { return mask }

// LogValue returns "[SECRET]".
func (Masked) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalJSON returns "[SECRET]" as a JSON string.
func (Masked) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, mask), nil }

package codec

import (
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Summary is what a response says of itself and its cost.
type Summary struct {
	Model, ID, StopReason string
	state.Usage
}

// Identify sets the model, the id and the reason of the end to values that are
// not empty.
func (u *Summary) Identify(model, id string, stop []byte) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&u.Model, model)
	set(&u.ID, id)
	set(&u.StopReason, StopReason(stop))
}

// SetCount sets a count to the first member that is a count.
func SetCount(count *int, members jsontext.Object, names ...string) {
	for _, name := range names {
		if n, err := strconv.Atoi(string(members.Get(name))); err == nil && n >= 0 {
			*count = n
			return
		}
	}
}

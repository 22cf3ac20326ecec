package codec

import (
	"strconv"

	"github.com/agentstate/state/internal/jsontext"
)

// Usage is what a response says of its cost. Counts are of tokens, -1 if they
// are not reported. Input contains CacheRead and CacheWrite, and Output contains
// Reasoning.
type Usage struct {
	Model, ID, StopReason                           string
	Input, Output, CacheRead, CacheWrite, Reasoning int
}

// NoUsage is the usage of a response that says nothing of it.
var NoUsage = Usage{Input: -1, Output: -1, CacheRead: -1, CacheWrite: -1, Reasoning: -1}

// Identify sets the model, the id and the reason of the end to values that are
// not empty.
func (u *Usage) Identify(model, id string, stop []byte) {
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

// Sum returns the sum of the counts that are reported, -1 if the first is not.
func Sum(first int, others ...int) int {
	if first < 0 {
		return -1
	}
	for _, n := range others {
		first += max(0, n)
	}
	return first
}

// WithCount returns an object with a count, unless it is not reported.
func WithCount(object jsontext.Object, name string, count int) jsontext.Object {
	if count < 0 {
		return object
	}
	return object.With(name, strconv.AppendInt(nil, int64(count), 10))
}

package tool

import (
	"math"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/value"
)

// claim is what an output takes of its field at most: bytes, or for a number
// its magnitude. While a field has room for the claims of all outputs that are
// held, none of them can be refused because of another, in any order, and they
// need not be tried together. Without claims, the trials of a step whose calls
// return in reverse order grow with the square of their number.
type claim struct {
	field string
	need  int
	by    state.AnyHandler // nil if nothing is known
}

// newClaim returns the claim of a value that is written through a handler. It
// may call methods of the value.
func newClaim(v reflect.Value, by state.AnyHandler) claim {
	switch {
	case v.CanInt():
		return numberClaim(float64(v.Int()), by)
	case v.CanUint():
		return numberClaim(float64(v.Uint()), by)
	case v.CanFloat():
		return numberClaim(v.Float(), by)
	}
	plan, err := value.For(v.Type())
	if err != nil {
		return claim{}
	}
	size, err := plan.Check(v, value.Limits{})
	if err != nil {
		return claim{}
	}
	return claim{need: size, by: by}
}

func numberClaim(f float64, by state.AnyHandler) claim {
	if f = math.Abs(f); f < 1<<52 {
		return claim{need: int(math.Ceil(f)), by: by}
	}
	return claim{}
}

// claims are the claims of the outputs that a step holds, by field.
type claims []fieldClaims

type fieldClaims struct {
	field   string
	need    int // of all outputs that have claims
	unknown int // how many outputs have none
}

// of returns the claims of a field.
func (c *claims) of(field string) *fieldClaims {
	for i := range *c {
		if (*c)[i].field == field {
			return &(*c)[i]
		}
	}
	*c = append(*c, fieldClaims{field: field})
	return &(*c)[len(*c)-1]
}

// add adds the claims of a call n times: an n of -1 takes them away.
func (c *claims) add(call []claim, n int) {
	known := areKnown(call)
	for _, claim := range call {
		if known {
			c.of(claim.field).need += n * claim.need
		} else {
			c.of(claim.field).unknown += n
		}
	}
}

// fit reports whether a state has room for the claims of a call together with
// all that are held, and runs no code of users when it writes them.
func (c *claims) fit(st *state.State, call []claim) bool {
	if !areKnown(call) {
		return false
	}
	for _, claim := range call {
		all := c.of(claim.field)
		need := all.need
		for _, other := range call {
			if other.field == claim.field {
				need += other.need
			}
		}
		room, ok := internal.Room(st, claim.field, claim.by)
		if !ok || all.unknown > 0 || need > room {
			return false
		}
	}
	return true
}

// areKnown reports whether something is known about all outputs of a call.
func areKnown(call []claim) bool {
	return !slices.ContainsFunc(call, func(c claim) bool { return c.by == nil })
}

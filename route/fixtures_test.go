package route_test

import (
	"time"

	"github.com/agentstate/state"
)

type mood string

type place struct {
	City string `json:"city"`
	Zip  int    `json:"zip"`
}

// The fields that the tests ask about. Agent "support" may read all of them,
// "general" all but card, score and log.
var (
	intent = &state.Field[string]{Name: "intent", Owner: "support", Read: state.Public}
	amount = &state.Field[float64]{Name: "amount", Owner: "support", Read: state.Public}
	visits = &state.Field[int]{Name: "visits", Owner: "support", Read: state.Public}
	serial = &state.Field[uint64]{Name: "serial", Owner: "support", Read: state.Public}
	vip    = &state.Field[bool]{Name: "vip", Owner: "support", Read: state.Public}
	temper = &state.Field[mood]{Name: "temper", Owner: "support", Read: state.Public}
	due    = &state.Field[state.Time]{Name: "due", Owner: "support", Read: state.Public}
	seen   = &state.Field[time.Time]{Name: "seen", Owner: "support", Read: state.Public}
	home   = &state.Field[place]{Name: "home", Owner: "support", Read: state.Public}
	tags   = &state.Field[[]string]{Name: "tags", Owner: "support", Read: state.Public}
	extra  = &state.Field[any]{Name: "extra", Owner: "support", Read: state.Public}
	card   = &state.Field[string]{Name: "card", Owner: "support", Secret: true}
	score  = &state.Field[int]{Name: "score", Owner: "support"}
	log    = &state.Field[[]string]{Name: "log", Owner: "support"}

	desk = state.MustSchema(
		state.Team{"support": {"general"}},
		intent, amount, visits, serial, vip, temper, due, seen, home, tags, extra, card, score, log,
	)
)

func ptr[T any](v T) *T { return &v }

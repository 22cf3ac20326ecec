package statetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// What the agent search may not know, and what it may.
var (
	hiddenCard   = &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	hiddenNotes  = &state.Field[[]string]{Name: "complaints", Read: state.Only("billing"), Write: state.Only("billing")}
	hiddenRates  = &state.Field[map[string]int]{Name: "rates", Read: state.Only("billing")}
	shownTopic   = &state.Field[string]{Name: "subject", Read: state.Public, Write: state.Public}
	hiddenSchema = state.MustSchema(state.Team{"support": {"billing", "search"}}, hiddenCard, hiddenNotes, hiddenRates, shownTopic)
)

// hidden returns a state with values for all fields.
func hidden() *state.State {
	st := state.New(hiddenSchema)
	rates := map[string]int{}
	for i := range 100 {
		rates[fmt.Sprint("rate ", i)] = i
	}
	err := errors.Join(hiddenCard.Set(st, "4242-4242-4242"), hiddenNotes.Set(st, []string{"late", "broken"}),
		hiddenRates.Set(st, rates), shownTopic.Set(st, "a keyboard"))
	if err != nil {
		panic(err)
	}
	return st
}

// asks lets an agent ask a model with a prompt.
func asks(m *statetest.Model, st *state.State, agent, prompt string) error {
	result, err := m.Next(context.Background(), agent, []state.Message{state.UserText(prompt)})
	if err != nil {
		return err
	}
	return st.As(agent).History().Append(result)
}

func interfereProgram(row int, name string, run func(t *testing.T, mistake bool), words ...string) {
	programs = append(programs, program{row, "interfere", name, run, words})
}

// searching is a sound run.
func searching(st *state.State, seen *statetest.Seen) {
	m := seen.Model(provider.OpenAI, statetest.Say("Nothing."))
	seen.Text("error", fmt.Sprint(asks(m, st, "search", "Find "+shownTopic.Or(st, ""))))
}

func init() {
	other := statetest.Other(hiddenCard, "5555-5555-5555-5555")

	interfereProgram(40, "router on a hidden field", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			m := seen.Model(provider.OpenAI, statetest.Say("Nothing.").Times(-1))
			// The result is not appended: search would see the prompt in the history.
			_, _ = m.Next(t.Context(), "billing", []state.Message{state.UserText("Charge " + hiddenCard.Or(st, ""))})
			if !mistake || hiddenCard.Has(st) {
				_ = asks(m, st, "search", "Find it.")
			}
			seen.Text("end", "done")
		}, other, statetest.Without(hiddenCard))
	}, "search can tell what card is: with Without(card)", "request 1 differs", `- {"type":"text","role":"user","content":"Find it."}`,
		"again: go test -run '^TestBroken$/^40_router_on_a_hidden_field$/^without_card$'")

	interfereProgram(41, "length of a mask", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			m := seen.Model(provider.OpenAI, statetest.Say("Nothing."))
			mask := "****"
			if mistake {
				mask = strings.Repeat("*", len(hiddenCard.Or(st, "")))
			}
			_ = asks(m, st, "search", "The card is "+mask)
		}, other)
	}, "with Other(card), request 1 differs", "**************", "*******************")

	interfereProgram(42, "hidden count", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			if mistake {
				_ = shownTopic.Set(st, fmt.Sprint("customer with complaints: ", state.Len(st, hiddenNotes)))
			}
			seen.Text("reply", "done")
		}, statetest.Other(hiddenNotes, []string{"late"}))
	}, "search can tell what complaints is", "Describe differs", "complaints: 2", "complaints: 1")

	misses := map[string]bool{}
	interfereProgram(43, "map order", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			var names []string
			for name := range hiddenRates.Or(st, nil) {
				names = append(names, name)
			}
			if !mistake {
				slices.Sort(names)
			}
			misses[fmt.Sprint(mistake, names)] = true // a cache of prompts
			if mistake {
				seen.Text("misses of the cache", fmt.Sprint(len(misses)))
			}
			seen.Text("reply", "done")
		}, other)
	}, "not deterministic: two runs with the same state differ for search in text misses of the cache")

	interfereProgram(0, "secret told", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			m := seen.Model(provider.OpenAI, statetest.Say("Nothing."))
			prompt := "Find it."
			if mistake {
				prompt = "Card " + hiddenCard.Or(st, "")
			}
			_ = asks(m, st, "search", prompt)
		}, other)
	}, "Card [SECRET 1]", "Card [SECRET 2]")

	interfereProgram(0, "request more", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			m := seen.Model(provider.OpenAI, statetest.Say("Nothing.").Times(-1))
			_ = asks(m, st, "search", "Find it.")
			if mistake && state.Len(st, hiddenNotes) == 0 {
				_ = asks(m, st, "search", "And that.")
			}
		}, statetest.Without(hiddenNotes))
	}, "request 2 differs", `+ {"type":"text","role":"user","content":"And that."}`)

	interfereProgram(0, "order of writes", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			seen.Text("reply", "done")
			if mistake && hiddenCard.Has(st) {
				_ = shownTopic.Set(st, "a mouse")
			}
			_ = shownTopic.Set(st, "a keyboard")
		}, statetest.Without(hiddenCard))
	}, "Version differs")

	interfereProgram(0, "who writes", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			seen.Text("reply", "done")
			writer := st
			if mistake && hiddenCard.Has(st) {
				writer = st.As("billing")
			}
			_ = shownTopic.Set(writer, "a keyboard")
		}, statetest.Without(hiddenCard))
	}, "Changes differs", "billing set subject", "host set subject")

	interfereProgram(0, "field that the agent may read", func(t *testing.T, mistake bool) {
		v := other
		if mistake {
			v = statetest.Other(shownTopic, "a mouse")
		}
		statetest.Interfere(t, "search", hidden, searching, v)
	}, "search may read subject")

	interfereProgram(0, "nothing seen", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			agent := "search"
			if mistake {
				agent = "billing"
			}
			_ = asks(seen.Model(provider.OpenAI, statetest.Say("Nothing.")), st, agent, "Find it.")
		}, other)
	}, "search has seen nothing: no request and no text, but there were requests of billing")

	interfereProgram(0, "the same value", func(t *testing.T, mistake bool) {
		v := other
		if mistake {
			v = statetest.Other(hiddenCard, "4242-4242-4242")
		}
		statetest.Interfere(t, "search", hidden, searching, v)
	}, "Other(card) changes nothing")

	interfereProgram(0, "agent outside of the team", func(t *testing.T, mistake bool) {
		agent := "search"
		if mistake {
			agent = "serach"
		}
		statetest.Interfere(t, agent, hidden, func(_ *state.State, seen *statetest.Seen) { seen.Text("reply", "") }, other)
	}, "serach may not read any field")

	interfereProgram(0, "one state for both runs", func(t *testing.T, mistake bool) {
		st := hidden()
		statetest.Interfere(t, "search", func() *state.State {
			if mistake {
				return st
			}
			return hidden()
		}, searching, other)
	}, "setup returned a state for the second time")

	interfereProgram(0, "replies left", func(t *testing.T, mistake bool) {
		statetest.Interfere(t, "search", hidden, func(st *state.State, seen *statetest.Seen) {
			replies := []statetest.Reply{statetest.Say("Nothing.")}
			if mistake {
				replies = append(replies, statetest.Say("Nothing more."))
			}
			_ = asks(seen.Model(provider.OpenAI, replies...), st, "search", "Find it.")
		}, other)
	}, "replies of the model are left")

	interfereProgram(0, "no Vary", func(t *testing.T, mistake bool) {
		vary := []statetest.Vary{other}
		if mistake {
			vary = nil
		}
		statetest.Interfere(t, "search", hidden, searching, vary...)
	}, "no Vary: nothing could be told apart")
}

// A field that is not set can get a value. The versions of the host's handle do
// not differ by that.
func TestInterfereSetsAFieldThatIsUnset(t *testing.T) {
	setup := func() *state.State { return state.New(hiddenSchema) }
	versions := map[uint64]bool{}
	ran := 0
	statetest.Interfere(t, "search", setup, func(st *state.State, seen *statetest.Seen) {
		ran++
		versions[st.Version()] = true
		seen.Text("version", fmt.Sprint(st.Version()))
	}, statetest.Other(hiddenCard, "5555-5555"), statetest.Other(hiddenNotes, []string{"late"}))
	require.Equal(t, 4, ran)
	require.Len(t, versions, 1)
}

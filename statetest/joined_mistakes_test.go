package statetest_test

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/statetest"
)

// joined adds a program with branches, which are checked.
func joined(row int, name string, run func(st *state.State, mistake bool) error, words ...string) {
	programs = append(programs, mistakes.Program{Row: row, Part: "joined", Name: name, Words: words, Run: func(t *testing.T, mistake bool) {
		st := state.New(orderSchema)
		statetest.Joined(t, st)
		if err := run(st, mistake); err != nil {
			t.Fatal(err)
		}
	}})
}

func init() {
	joined(0, "a branch is never joined", func(st *state.State, mistake bool) error {
		a, b := st.Fork(), st.As("search").Fork()
		if err := orderFound.Set(a, []string{"a"}); err != nil {
			return err
		}
		if err := orderFound.Set(b, []string{"b"}); err != nil || mistake {
			return err
		}
		return st.Join(a, b)
	}, "never joined", "found", "joined_mistakes_test.go")
	joined(0, "a branch of a branch is never joined", func(st *state.State, mistake bool) error {
		a := st.Fork()
		b := a.Fork()
		if err := orderTopic.Set(b, "b"); err != nil {
			return err
		}
		if !mistake {
			if err := a.Join(b); err != nil {
				return err
			}
		}
		return st.Join(a)
	}, "never joined", "topic")
	joined(0, "a join that was refused", func(st *state.State, mistake bool) error {
		a := st.Fork()
		if err := orderTopic.Set(a, "a"); err != nil {
			return err
		}
		_ = st.Join(a, a) // given twice
		if mistake {
			return nil
		}
		return st.Join(a)
	}, "never joined", "topic")
	joined(0, "a result that is lost", func(st *state.State, mistake bool) error {
		a := st.Fork()
		if err := a.UserSays("Hello!"); err != nil {
			return err
		}
		if mistake {
			return nil
		}
		return st.Join(a)
	}, "never joined", "messages")
	joined(0, "clones and empty branches", func(st *state.State, mistake bool) error {
		st.Fork()
		if err := orderTopic.Set(st.Snapshot().Fork(), "clone"); err != nil {
			return err
		}
		err := st.Update(func(tx *state.State) error { return orderTopic.Set(tx, "t") })
		if mistake {
			return orderTopic.Set(st.Fork(), "lost")
		}
		return err
	}, "topic")
}

package statetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state"
)

// Want is what a test wants of a field: see [Is], [Unset] and [Denied].
type Want struct {
	check func(st *state.State, s *secrets) (problem string)
	learn func(st *state.State, s *secrets) // what the test wants of secret fields
}

// Fields fails the test if a field of st is not as wanted, and reports whether
// all are. Only the fields that are named count. They are read with the rights
// of st. The failure has no part of a value of a Secret field.
func Fields(t testing.TB, st *state.State, want ...Want) bool {
	t.Helper()
	if len(want) == 0 {
		t.Fatalf("statetest: Fields without a field: there is nothing to check")
	}
	s := newSecrets(st)
	var problems []string
	for i, w := range want {
		if w.check == nil {
			t.Fatalf("statetest: Fields: argument %d is the zero Want", i+1)
		}
		w.learn(st, s)
	}
	for _, w := range want {
		if problem := w.check(st, s); problem != "" {
			problems = append(problems, s.mask(problem))
		}
	}
	if len(problems) == 0 {
		return true
	}
	t.Errorf("statetest: fields as %s reads them (want -, got +):\n%s\n    %s",
		reader(st), indented(strings.Join(problems, "\n")), rerun(t))
	return false
}

// reader names the agent whose rights a handle has.
func reader(st *state.State) string {
	if name := st.Agent(); name != "" {
		return name
	}
	return "the host"
}

// Is wants a field to have a value. It compares as [Equal] does.
func Is[T any](f *state.Field[T], want T, opts ...cmp.Option) Want {
	return wantOf(f, func(st *state.State, s *secrets) {
		if isSecret(st, f.Name) {
			s.addValue(want)
		}
	}, func(st *state.State, s *secrets, got T, err error) string {
		switch {
		case errors.Is(err, state.ErrNotFound):
			return f.Name + ": it is not set"
		case err != nil:
			return f.Name + ": " + err.Error()
		case cmp.Equal(want, got, compareWith(s), cmp.Options(opts)):
			return ""
		case isSecret(st, f.Name):
			return f.Name + ": it has another value, which is a secret"
		}
		return f.Name + ":\n" + strings.TrimRight(s.diff(want, got, opts...), "\n")
	})
}

// Unset wants a field that st may read and that has no value.
func Unset[T any](f *state.Field[T]) Want {
	return wantOf(f, nil, func(st *state.State, _ *secrets, got T, err error) string {
		switch {
		case errors.Is(err, state.ErrNotFound):
			return ""
		case err != nil:
			return f.Name + ": " + err.Error()
		case isSecret(st, f.Name):
			return f.Name + ": it is set, to a secret"
		}
		return f.Name + ": it is set:\n  + " + fmt.Sprint(treeOf(got))
	})
}

// Denied wants a field that st may not read.
func Denied[T any](f *state.Field[T]) Want {
	return wantOf(f, nil, func(st *state.State, _ *secrets, _ T, err error) string {
		switch {
		case errors.Is(err, state.ErrDenied):
			return ""
		case err == nil || errors.Is(err, state.ErrNotFound):
			return f.Name + ": " + reader(st) + " may read it"
		}
		return f.Name + ": " + err.Error()
	})
}

func wantOf[T any](f *state.Field[T], learn func(*state.State, *secrets), check func(*state.State, *secrets, T, error) string) Want {
	if learn == nil {
		learn = func(*state.State, *secrets) {}
	}
	if f == nil {
		return Want{
			check: func(*state.State, *secrets) string { return "the *state.Field is nil" },
			learn: func(*state.State, *secrets) {},
		}
	}
	return Want{
		check: func(st *state.State, s *secrets) string {
			got, err := f.Get(st)
			return check(st, s, got, err)
		},
		learn: learn,
	}
}

// isSecret reports whether a field that st may read is a Secret one.
func isSecret(st *state.State, name string) bool {
	for _, f := range st.Fields() {
		if f.Name == name {
			return f.Secret
		}
	}
	return true // it is not known
}

package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A build that does not know that a stored value is secret masks it all the same:
// the workspace says so, whatever the schema of the build says.
func TestSecretsThatABuildDoesNotDeclare(t *testing.T) {
	const secret = "SECRET-12345"
	token := func(shared bool) *state.Field[string] {
		return &state.Field[string]{Name: "token", Secret: true, Shared: shared}
	}
	note := &state.Field[string]{Name: "note"}
	for _, row := range []struct {
		name  string
		with  func() *state.Field[string]
		other []state.Part
		user  string
	}{
		{"removed", func() *state.Field[string] { return token(false) }, nil, "ann"},
		{"renamed", func() *state.Field[string] {
			f := token(false)
			f.Name, f.Was = "api_key", []string{"token"}
			return f
		}, []state.Part{token(false)}, "ann"},
		{"shared", func() *state.Field[string] { return token(true) },
			[]state.Part{&state.Field[int]{Name: "spent", Shared: true}}, workspace.Thread("ann", "1")},
		{"public", func() *state.Field[string] { return token(false) }, []state.Part{&state.Field[string]{Name: "token"}}, "ann"},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, f := store.NewMemory(), row.with()
			m := open(t, db, workspace.Options{Schema: state.MustSchema(note, f), Run: func(_ context.Context, run *workspace.Run) error {
				return errors.Join(f.Set(run.State(), secret), note.Set(run.State(), "the token is "+secret))
			}})
			_, err := m.Handle(t.Context(), row.user, text("go"))
			require.NoError(t, err)

			other := open(t, db, workspace.Options{
				Schema: state.MustSchema(append([]state.Part{note}, row.other...)...),
				Run:    func(context.Context, *workspace.Run) error { return errors.New("cannot log in with " + secret) },
			})
			_, err = other.Handle(t.Context(), row.user, text("fail"))
			require.ErrorContains(t, err, "cannot log in")
			for _, m := range []*workspace.Manager{m, other} {
				v := view(t, m, row.user)
				require.Equal(t, "[SECRET]", v.Redact(secret))
				data, err := json.Marshal(v)
				require.NoError(t, err)
				require.NotContains(t, string(data), secret)
				for _, d := range v.DeadLetters {
					require.NotContains(t, d.Reason, secret)
				}
				for r, err := range m.Records(t.Context(), row.user, 0) {
					require.NoError(t, err)
					data, err := json.Marshal(r)
					require.NoError(t, err)
					require.NotContains(t, string(data), secret)
				}
			}
		})
	}
}

package workspace_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// verbs returns the operations on a user's workspace, with the id of a message or a
// run.
func verbs(m *workspace.Manager, id string) map[string]func(ctx context.Context, user string) error {
	return map[string]func(ctx context.Context, user string) error{
		"AcceptRollback": func(ctx context.Context, u string) error { return m.AcceptRollback(ctx, u) },
		"Await":          func(ctx context.Context, u string) error { _, err := m.Await(ctx, u, id); return err },
		"Cancel":         func(ctx context.Context, u string) error { return m.Cancel(ctx, u, id, "why") },
		"Compact":        func(ctx context.Context, u string) error { return m.Compact(ctx, u) },
		"Delete":         func(ctx context.Context, u string) error { return m.Delete(ctx, u) },
		"Discard":        func(ctx context.Context, u string) error { return m.Discard(ctx, u, id) },
		"Do": func(ctx context.Context, u string) error {
			return m.Do(ctx, u, func(context.Context, *workspace.Run) error { return nil })
		},
		"Export":          func(ctx context.Context, u string) error { _, err := m.Export(ctx, u); return err },
		"Handle":          func(ctx context.Context, u string) error { _, err := m.Handle(ctx, u, text(id)); return err },
		"ImportWorkspace": func(ctx context.Context, u string) error { return m.ImportWorkspace(ctx, u, []byte("{}")) },
		"Records": func(ctx context.Context, u string) (err error) {
			for _, err = range m.Records(ctx, u, 0) {
			}
			return err
		},
		"Reset":   func(ctx context.Context, u string) error { _, err := m.Reset(ctx, u); return err },
		"Retry":   func(ctx context.Context, u string) error { return m.Retry(ctx, u, id) },
		"Store":   func(ctx context.Context, u string) error { return m.Store(u).Set(ctx, "k", "1") },
		"Submit":  func(ctx context.Context, u string) error { _, err := m.Submit(ctx, u, text(id)); return err },
		"Summary": func(ctx context.Context, u string) error { _, err := m.Summary(ctx, u); return err },
		"Update": func(ctx context.Context, u string) error {
			return m.Update(ctx, u, func(*workspace.Workspace) error { return nil })
		},
		"Verify": func(ctx context.Context, u string) error { _, err := m.Verify(ctx, u); return err },
		"View":   func(ctx context.Context, u string) error { _, err := m.View(ctx, u); return err },
		"ViewAt": func(ctx context.Context, u string) error { _, err := m.ViewAt(ctx, u, 7); return err },
		"Watch": func(ctx context.Context, u string) (err error) {
			for _, err = range m.Watch(ctx, u).AsHost() {
				break
			}
			return err
		},
	}
}

var runNothing = func(context.Context, *workspace.Run) error { return nil }

func TestMistakesInTheNameOfAUser(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: runNothing})
	for user, says := range map[string]string{
		"":                          "the name of a user must be non-empty UTF-8",
		"\xff":                      "the name of a user must be non-empty UTF-8",
		strings.Repeat("u", 10_000): "the name of the user is too long: its key has 10016 bytes, and ",
	} {
		for name, verb := range verbs(m, "9") {
			if name == "Store" && len(user) > 1 {
				continue // the key of the value is too long for the store, which says so
			}
			err := verb(t.Context(), user)
			require.ErrorIs(t, err, workspace.ErrInvalid, name)
			require.ErrorContains(t, err, says, name)
			require.Less(t, len(err.Error()), 300, name)
		}
	}
	require.Empty(t, entries(t, db))
}

func TestMistakeOfUsingAClosedManager(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: runNothing})
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "again")
	for name, verb := range verbs(m, "9") {
		if err := verb(t.Context(), "ann"); name == "Store" {
			require.NoError(t, err, "it needs no Manager")
		} else {
			require.ErrorIs(t, err, workspace.ErrClosed, name)
		}
	}
}

func TestMistakesAboutWhatThereIs(t *testing.T) {
	type want struct {
		err  error
		says string
	}
	done := want{}
	none := want{workspace.ErrNotFound, "the workspace does not exist"}
	nothing := map[string]want{ // of a workspace that does not exist
		"AcceptRollback":  none,
		"Await":           {workspace.ErrNotFound, `message "9": it was not accepted, or has ended long ago`},
		"Cancel":          {workspace.ErrNotFound, `run "9" is not under way`},
		"Compact":         done,
		"Delete":          done,
		"Discard":         {workspace.ErrNotFound, `no dead letter and no queued message "9"`},
		"Export":          none,
		"ImportWorkspace": {workspace.ErrInvalid, "not an export"},
		"Records":         done,
		"Reset":           done,
		"Retry":           {workspace.ErrNotFound, `no dead letter "9"`},
		"Summary":         done,
		"Verify":          done,
		"View":            done,
		"ViewAt":          {workspace.ErrInvalid, "there is no version 7 yet"},
	}
	for name, want := range nothing {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			m := open(t, db, workspace.Options{Run: runNothing})
			require.Contains(t, verbs(m, "9"), name)
			check := func() {
				before := entries(t, db)
				err := verbs(m, "9")[name](t.Context(), "ann")
				require.Equal(t, before, entries(t, db), "nothing is written")
				if want.err == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, want.err)
				require.ErrorContains(t, err, want.says)
				require.True(t, strings.HasPrefix(err.Error(), "workspace: "), err)
			}
			check()
			if want.says == "the workspace does not exist" || want.err == nil {
				return
			}
			_, err := m.Handle(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			check() // of one that exists
		})
	}
}

func TestMistakesInMessages(t *testing.T) {
	decisions := func(list ...tool.Decision) workspace.Message { return workspace.Message{Decisions: list} }
	long := strings.Repeat("x", 257)
	for name, test := range map[string]struct {
		msg  workspace.Message
		err  error
		says string
	}{
		"nothing":             {workspace.Message{}, workspace.ErrInvalid, "message without content"},
		"the zero message":    {workspace.Message{Content: state.TextMessage{}}, workspace.ErrInvalid, "the content is a state.TextMessage: want a message of package state that is neither nil nor zero"},
		"a nil pointer":       {workspace.Message{Content: (*state.TextMessage)(nil)}, workspace.ErrInvalid, "the content is a *state.TextMessage: want a message"},
		"a long id":           {workspace.Message{ID: long, Content: state.UserText("a")}, workspace.ErrInvalid, "UTF-8 of at most 256 bytes"},
		"a long chat id":      {workspace.Message{ChatID: long, Content: state.UserText("a")}, workspace.ErrInvalid, "UTF-8 of at most 256 bytes"},
		"a long platform":     {workspace.Message{Platform: long, Content: state.UserText("a")}, workspace.ErrInvalid, "UTF-8 of at most 256 bytes"},
		"a long agent":        {workspace.Message{Agent: long, Content: state.UserText("a")}, workspace.ErrInvalid, "UTF-8 of at most 256 bytes"},
		"an id of bytes":      {workspace.Message{ID: "\xff", Content: state.UserText("a")}, workspace.ErrInvalid, "UTF-8 of at most 256 bytes"},
		"no such call":        {decisions(tool.AnswerWith("unknown", "1")), state.ErrUnknownCall, `"unknown"; no call waits`},
		"no key":              {decisions(tool.Approve("")), workspace.ErrInvalid, `"" is not the key of a call`},
		"a key of bytes":      {decisions(tool.Approve("\xff")), workspace.ErrInvalid, "is not the key of a call"},
		"the zero decision":   {decisions(tool.Decision{}), workspace.ErrInvalid, `"" is not the key of a call`},
		"an unknown decision": {decisions(tool.Decision{Key: "a", Kind: "maybe"}), workspace.ErrInvalid, `unknown kind "maybe"`},
		"a second reason":     {decisions(tool.Decision{Key: "a", Kind: tool.DecisionApprove, Reason: "b"}), workspace.ErrInvalid, `"approve" has a reason, which is for refuse`},
		"an answer of bytes":  {decisions(tool.AnswerWith("a", "\xff")), workspace.ErrInvalid, "the result is not JSON"},
		"no answer":           {decisions(tool.AnswerWith("a", "")), workspace.ErrInvalid, "the result is not JSON"},
		"an input of bytes":   {decisions(tool.ApproveWith("a", "{")), workspace.ErrInvalid, "the input is not JSON"},
		"two decisions":       {decisions(tool.Approve("a"), tool.Refuse("a", "")), workspace.ErrInvalid, `decides twice about the call "a"`},
		"too many decisions":  {decisions(manyAnswers(65)...), workspace.ErrInvalid, "more than 64 decisions"},
		"an unknown WhenBusy": {workspace.Message{Content: state.UserText("a"), WhenBusy: 99}, workspace.ErrInvalid, "WhenBusy"},
		"a negative WhenBusy": {workspace.Message{Content: state.UserText("a"), WhenBusy: -1}, workspace.ErrInvalid, "WhenBusy"},
		"too large a message": {workspace.Message{Content: state.UserText(strings.Repeat("x", 17<<20))}, workspace.ErrInvalid, "limit ValueBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			m := open(t, db, workspace.Options{Run: runNothing})
			for verb, send := range map[string]func() error{
				"Submit": func() error { _, err := m.Submit(t.Context(), "ann", test.msg); return err },
				"Handle": func() error { _, err := m.Handle(t.Context(), "ann", test.msg); return err },
			} {
				err := send()
				require.ErrorContains(t, err, test.says, verb)
				require.Less(t, len(err.Error()), 400, verb)
				require.ErrorIs(t, err, test.err, verb)
				var typed *workspace.Error
				require.True(t, errors.As(err, &typed), verb)
				require.Equal(t, "ann", typed.User)
			}
			require.Empty(t, entries(t, db), "nothing is accepted")
		})
	}
}

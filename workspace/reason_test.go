package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What pages show of a failure is one line without a stack, which has the paths of
// the program's files. The log has the stack, without secrets.
func TestAReasonIsOneLineAndTheLogHasTheStack(t *testing.T) {
	for name, row := range map[string]struct {
		run    func() error
		reason string
		stack  bool
	}{
		"panic": {func() error { panic("no s3cret\nhere") }, "workspace: run panicked: no [SECRET] here", true},
		"caught by a framework": {func() (err error) {
			defer func() {
				err = fmt.Errorf("framework: [node] panic error: %v, \nstack: s3cret %s\n---\nnode path: [a]", recover(), debug.Stack())
			}()
			panic("no s3cret")
		}, "framework: [node] panic error: no [SECRET]", true},
		"several": {func() error { return errors.Join(errors.New("shop: closed"), errors.New("bank: closed")) }, "shop: closed bank: closed", false},
	} {
		t.Run(name, func(t *testing.T) {
			var log testkit.Buffer
			m := open(t, store.NewMemory(), workspace.Options{
				Run:    func(context.Context, *workspace.Run) error { return row.run() },
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return token.Set(w.State(), "s3cret") }))
			out, err := m.Handle(t.Context(), "ann", text("1"))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "goroutine")
			require.Equal(t, row.reason, out.Reason)
			view, err := m.View(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, row.reason, view.DeadLetters[0].Reason)
			require.NoError(t, m.Close())
			require.NotContains(t, log.String(), "s3cret")
			if row.stack {
				require.Contains(t, log.String(), `level=ERROR msg="run panicked"`)
				require.Contains(t, log.String(), "reason_test.go")
			}
		})
	}
}

package workspacetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Runs has the runs of a Manager whose Options.Run waits until the test ends
// them. A run that nobody ends is under way until its context ends, as that of a
// process that is killed.
type Runs struct {
	*workspace.Manager
	begun chan *Held // of those that Begin has not begun
}

// Hold is [Open] for a test that ends the runs itself.
func Hold(t testing.TB, db store.Store, opts workspace.Options) (*workspace.Manager, *Runs) {
	t.Helper()
	r := &Runs{begun: make(chan *Held)}
	opts.Run = r.hold
	r.Manager = Open(t, db, opts)
	return r.Manager, r
}

// hold is the Options.Run.
func (r *Runs) hold(ctx context.Context, run *workspace.Run) error {
	h := &Held{Run: run, result: make(chan error, 1), ended: make(chan ended, 1)}
	begun, ok := ctx.Value(begunKey{}).(chan *Held)
	if !ok {
		begun = r.begun
	}
	select {
	case begun <- h:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-h.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begunKey is the key of the channel on which a run is handed over to Begin.
type begunKey struct{}

// Held is a run that is under way until the test ends it.
type Held struct {
	*workspace.Run
	result chan error // what its function returns
	ended  chan ended
}

// ended is what a caller hears who waits for the message of a run.
type ended struct {
	out workspace.Outcome
	err error
}

// Begin begins the run of a message with Handle.
func (r *Runs) Begin(t testing.TB, user string, msg workspace.Message) *Held {
	t.Helper()
	begun, handled := make(chan *Held), make(chan ended, 1)
	go func() {
		out, err := r.Handle(context.WithValue(t.Context(), begunKey{}, begun), user, msg)
		handled <- ended{out, err}
	}()
	select {
	case h := <-begun:
		h.ended = handled
		return h
	case e := <-handled:
		require.FailNow(t, "no run has begun", "%+v: %v", e.out, e.err)
	}
	return nil
}

// Next returns the next run that Begin has not begun.
func (r *Runs) Next(t testing.TB) *Held {
	t.Helper()
	h := <-r.begun
	go func() {
		out, err := r.Await(t.Context(), h.UserID(), h.Message().ID)
		h.ended <- ended{out, err}
	}()
	return h
}

// Finish lets the function of the run return, and requires that its changes are
// stored.
func (h *Held) Finish(t testing.TB) {
	t.Helper()
	out, err := h.End(nil)
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
}

// Fail lets the function of the run return an error, and requires that its
// message becomes a dead letter.
func (h *Held) Fail(t testing.TB, reason error) {
	t.Helper()
	out, _ := h.End(reason)
	require.Equal(t, workspace.StatusFailed, out.Status)
}

// End lets the function of the run return err, and returns what Handle or Await
// returns then.
func (h *Held) End(err error) (workspace.Outcome, error) {
	h.result <- err
	e := <-h.ended
	return e.out, e.err
}

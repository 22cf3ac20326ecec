package workspace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Each row is a call that is due at a look, and when the one before was. What its
// clock says of the process that has suspended it is in the fields of the call.
func TestClocksOfCallsThatAreDue(t *testing.T) {
	now := ledger.CurrentTime()
	before := now.Add(-4 * time.Second)
	for _, row := range []struct {
		name      string
		since     time.Duration // before now
		until     time.Duration
		seen      bool // at the look before
		first     bool // there was none
		again     bool
		wantsOdd  bool
		wantsLate bool // when it is looked at once more
	}{
		{name: "the clock of the other is 10 minutes behind", since: 10 * time.Minute, until: 5 * time.Minute, wantsOdd: true, wantsLate: true},
		{name: "it has become due", since: 5 * time.Minute, until: time.Second},
		{name: "it was known", since: 10 * time.Minute, until: 5 * time.Minute, seen: true},
		{name: "nobody has looked before", since: 10 * time.Minute, until: 5 * time.Minute, first: true},
		{name: "it waits again", since: 10 * time.Minute, until: 5 * time.Minute, again: true},
		{name: "it was short", since: 2 * time.Second, until: time.Second},
		{name: "within the leeway", since: 12 * time.Second, until: 10 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := Open(t.Context(), store.NewMemory(), &Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			until := now.Add(-row.until)
			require.NoError(t, m.Update(t.Context(), "ann", func(w *Workspace) error {
				said := state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "pay"})}}
				if err := w.State().History().Append(said); err != nil {
					return err
				}
				w.suspended.set(w.State().History().Pending()[0].Key, document.Suspension{
					RunID: "run", At: now.Add(-row.since), Until: until, Again: row.again,
				})
				return nil
			}))
			v, err := m.View(t.Context(), "ann")
			require.NoError(t, err)
			e := ledger.Expiry{User: "ann", At: until.UnixMilli()}
			last := &arrivals{looked: before, seen: map[ledger.Expiry]bool{e: row.seen}}
			if row.first {
				last.looked = time.Time{}
			}
			a := last.next()
			a.seen[e] = true
			require.Equal(t, row.wantsOdd, a.note(e, v, last, 12*time.Second) != nil)
			require.Equal(t, row.wantsOdd, a.odd[e])
			next := a.next()
			require.NoError(t, next.note(e, v, a, 12*time.Second), "it is said once")
			require.Equal(t, row.wantsLate, next.odd[e])
		})
	}
}

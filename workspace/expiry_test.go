package workspace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// expiring returns the keys by which Managers find what expires.
func expiring(t *testing.T, db store.Store) (keys []string) {
	for e, err := range db.List(context.Background(), "agent:busy:expire:", "", false) {
		require.NoError(t, err)
		keys = append(keys, e.Key)
	}
	return keys
}

// A call that waits is refused when its time is over, unless a decision was
// accepted before.
func TestExpiry(t *testing.T) {
	const wait, soon = time.Hour, 10 * time.Second
	hear := func(t *testing.T, o *office, text, reply string) {
		got, err := o.hear(t, text)
		require.NoError(t, err)
		require.Equal(t, reply, got)
	}
	for name, test := range map[string]func(t *testing.T, o *office){
		"nobody decides": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			s := view(t, o.m, "ann").Suspended()
			require.Len(t, s, 1)
			require.Equal(t, wait, s[0].Until.Sub(s[0].Since))
			require.Len(t, expiring(t, o.db), 1)
			time.Sleep(wait - time.Second)
			require.Equal(t, []string{"call_a"}, o.waits(t))
			time.Sleep(time.Second + soon)
			require.Empty(t, o.waits(t))
			require.Empty(t, expiring(t, o.db))
			require.Equal(t, []string{"pay a", "tool_call", "tool_result", "re The call was not made: nobody has decided about it in time."},
				conversation(t, view(t, o.m, "ann")))
			require.Empty(t, o.made)
			require.Equal(t, 2, o.asked)
			_, err := o.hear(t, "approve a")
			require.ErrorIs(t, err, workspace.ErrNotSuspended)
		},
		"only the first": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			time.Sleep(wait / 2)
			hear(t, o, "pay b", "")
			require.Len(t, expiring(t, o.db), 1, "each workspace is there once")
			time.Sleep(wait/2 + soon)
			require.Equal(t, []string{"call_b"}, o.waits(t))
			require.Len(t, expiring(t, o.db), 1)
			hear(t, o, "approve b", "re paid b")
			require.Empty(t, expiring(t, o.db))
			time.Sleep(wait)
			require.Len(t, o.made, 1)
		},
		"an approval that was accepted before": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			approval := workspace.Message{Decisions: []tool.Decision{tool.Approve(o.key(t, "a"))}}
			o.before(func() {
				o.before(nil)
				_, err := o.m.Submit(context.Background(), "ann", approval)
				require.NoError(t, err)
				time.Sleep(2 * wait)
			})
			hear(t, o, "hello", "re hello")
			require.NoError(t, o.m.Wait(t.Context()))
			require.Len(t, o.made, 1)
			require.Empty(t, o.waits(t))
			require.Empty(t, view(t, o.m, "ann").DeadLetters)
		},
		"an approval that comes too late": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			approval := workspace.Message{Decisions: []tool.Decision{tool.Approve(o.key(t, "a"))}}
			o.before(func() {
				o.before(nil)
				time.Sleep(2 * wait)
				_, err := o.m.Submit(context.Background(), "ann", approval)
				require.ErrorIs(t, err, workspace.ErrNotSuspended)
			})
			hear(t, o, "hello", "re hello")
			time.Sleep(soon)
			require.Empty(t, o.made)
			require.Empty(t, o.waits(t))
		},
		"the model is away": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			o.before(o.fail)
			time.Sleep(2 * wait)
			dead := view(t, o.m, "ann").DeadLetters
			require.Len(t, dead, 1, "it is not tried again and again")
			o.before(nil)
			require.NoError(t, o.m.Retry(t.Context(), "ann", dead[0].Message.ID))
			time.Sleep(soon)
			require.Empty(t, o.waits(t))
		},
		"the run of the expiry is undone": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			o.before(func() {
				o.before(nil)
				time.Sleep(time.Minute)
			})
			time.Sleep(wait + soon)
			require.NotNil(t, view(t, o.m, "ann").Run)
			_, err := o.m.Handle(t.Context(), "ann", whenBusy(workspace.BusyRollback, text("hello")))
			require.NoError(t, err)
			require.Equal(t, []string{"call_a"}, o.waits(t))
			time.Sleep(2 * time.Minute)
			require.Empty(t, o.waits(t))
		},
		"several processes": func(t *testing.T, o *office) {
			for range 3 {
				open(t, o.db, workspace.Options{Run: nothing})
			}
			hear(t, o, "pay a", "")
			time.Sleep(wait + soon)
			require.Empty(t, o.waits(t))
			require.LessOrEqual(t, o.asked, 2)
		},
		"another process": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			require.NoError(t, o.m.Close())
			o.m = open(t, o.db, o.opts)
			time.Sleep(wait + soon)
			require.Empty(t, o.waits(t))
			require.Empty(t, expiring(t, o.db))
		},
		"the user is deleted": func(t *testing.T, o *office) {
			hear(t, o, "pay a", "")
			require.NoError(t, o.m.Delete(t.Context(), "ann"))
			require.Empty(t, expiring(t, o.db))
		},
		"a key that is left": func(t *testing.T, o *office) {
			for _, key := range []string{"agent:busy:expire:0000000000000001:nobody", "agent:busy:expire:-:x"} {
				_, err := store.Put(t.Context(), o.db, key, nil, store.Always)
				require.NoError(t, err)
			}
			hear(t, o, "pay a", "")
			time.Sleep(soon)
			require.Len(t, expiring(t, o.db), 1)
			time.Sleep(wait)
			require.Empty(t, o.waits(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newOffice(t, tool.Expires(wait))) })
		})
	}
}

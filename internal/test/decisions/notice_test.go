package decisions_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// mailbox is a program that is told of calls.
type mailbox struct {
	mu    sync.Mutex
	mails []string
	m     *workspace.Manager // to ask whether a call is there
	fails func() error
}

func (b *mailbox) notify(ctx context.Context, user string, call workspace.Suspended) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		if err := b.fails(); err != nil {
			return err
		}
	}
	stored := false
	if v, err := b.m.View(ctx, user); err == nil {
		for _, s := range v.Suspended() {
			stored = stored || s.Key == call.Key
		}
	}
	b.mails = append(b.mails, fmt.Sprintf("%s: %s, stored %v, expired %v", user, call.Reason, stored, call.Expired))
	return nil
}

func (b *mailbox) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.mails...)
}

// Each test has its own time.
func inbox(t *testing.T, test func(t *testing.T, b *bank, box *mailbox, opts workspace.Options)) {
	synctest.Test(t, func(t *testing.T) {
		box := &mailbox{}
		test(t, newBank(tool.Expires(time.Hour)), box, workspace.Options{Notify: box.notify})
	})
}

const (
	annWaits   = "ann: money for ann, stored true, expired false"
	annExpired = "ann: money for ann, stored true, expired true"
)

func TestTheProgramIsToldOfCallsThatWaitAndExpire(t *testing.T) {
	inbox(t, func(t *testing.T, b *bank, box *mailbox, opts workspace.Options) {
		box.m = b.manager(t, store.NewMemory(), opts, []state.ToolCall{pay("", "ann"), pay("", "bob")})
		handle(t, box.m, say("Pay."))
		require.Equal(t, []string{annWaits, "ann: money for bob, stored true, expired false"}, box.all())
		handle(t, box.m, decide(tool.Refuse(waiting(t, box.m)[1].Key, "no")))
		time.Sleep(50 * time.Minute)
		require.Len(t, box.all(), 2, "nobody is told twice")
		time.Sleep(time.Hour)
		require.Equal(t, []string{annExpired}, box.all()[2:])
		require.Empty(t, waiting(t, box.m))
	})
}

// What a mail server refuses is sent again, also when nobody writes any more.
func TestTheProgramIsToldAgainIfItFails(t *testing.T) {
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("no mail") },
		"a panic":  func() error { panic("no mail") },
	} {
		t.Run(name, func(t *testing.T) {
			inbox(t, func(t *testing.T, b *bank, box *mailbox, opts workspace.Options) {
				box.fails = fail
				box.m = b.manager(t, store.NewMemory(), opts, []state.ToolCall{pay("", "ann")})
				handle(t, box.m, say("Pay."))
				time.Sleep(5 * time.Minute)
				require.Empty(t, box.all())
				box.mu.Lock()
				box.fails = nil
				box.mu.Unlock()
				time.Sleep(5 * time.Minute)
				require.Equal(t, []string{annWaits}, box.all())
			})
		})
	}
}

// A run that is interrupted or fails after it has suspended a call does not tell,
// and another Manager does.
func TestOthersTellOfCallsOfRunsThatHaveEndedOtherwise(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *workspace.Manager, run *workspace.Run){
		"interrupt": func(t *testing.T, m *workspace.Manager, run *workspace.Run) {
			_, err := m.Submit(t.Context(), "ann", workspace.Message{Content: state.UserText("Wait!"), WhenBusy: workspace.BusyInterrupt})
			require.NoError(t, err)
		},
		"failure": func(*testing.T, *workspace.Manager, *workspace.Run) {},
	} {
		t.Run(name, func(t *testing.T) {
			inbox(t, func(t *testing.T, b *bank, box *mailbox, opts workspace.Options) {
				db := store.NewMemory()
				b.manager(t, db, workspace.Options{}) // has no Notify
				runs := 0
				own := opts
				own.Run = func(ctx context.Context, run *workspace.Run) error {
					if runs++; runs > 1 {
						return nil
					}
					result := state.InferenceResult{Output: []state.Message{state.ToolCalls(pay("", "ann"))}}
					if err := run.State().History().Append(result); err != nil {
						return err
					}
					key := ""
					for _, r := range run.State().History().All() {
						key = r.Output[0].(state.ToolCallMessage).Calls()[0].Key
					}
					if err := errors.Join(run.Suspend(key), run.Commit(ctx)); err != nil {
						return err
					}
					end(t, box.m, run)
					return errors.New("broken")
				}
				m, err := workspace.Open(t.Context(), db, &own)
				require.NoError(t, err)
				defer func() { require.NoError(t, m.Close()) }()
				box.m = m
				_, _ = m.Handle(t.Context(), "ann", say("Pay."))
				time.Sleep(5 * time.Minute)
				require.Equal(t, []string{"ann: , stored true, expired false"}, box.all())
				time.Sleep(time.Hour)
				require.Len(t, box.all(), 1)
			})
		})
	}
}

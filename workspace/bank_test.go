package workspace_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// life is the life of a process: the number of operations of its store until
// the process dies. The last one takes effect if reply is set, but the process
// does not hear of it. A process whose life is negative does not die.
type life struct {
	mu    sync.Mutex
	left  int
	reply bool
}

var errDead = fmt.Errorf("%w: the process is dead", store.ErrClosed)

// use counts an operation. It reports whether the operation takes effect, and
// whether the process lives on.
func (l *life) use() (done, lives bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return false, false
	}
	l.left--
	return l.left != 0 || l.reply, l.left != 0
}

func (l *life) lives() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left != 0
}

// seenBy returns a store as a process sees it that dies.
func (l *life) seenBy(db store.Store) store.Store {
	return fakestore.New(db, func(_ context.Context, _ fakestore.Call, do func() error) (err error) {
		done, lives := l.use()
		if done {
			err = do()
		}
		if !lives {
			return errDead
		}
		return err
	})
}

// bank refunds an order once for each idempotency key.
type bank struct {
	mu      sync.Mutex
	refunds map[string]int // by order
	keys    map[string]bool
}

func (b *bank) refund(order, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.keys[key] {
		b.keys[key] = true
		b.refunds[order]++
	}
}

// refunder is a program that refunds two orders, one after the other.
type refunder struct {
	bank   *bank
	callID func(asked int, order string) string // the id that the model gives to a call
	key    func(run *workspace.Run, call state.ToolCall) string
	asked  *int // how often the model was asked
	life   *life
}

func (r refunder) run(ctx context.Context, run *workspace.Run) error {
	history := run.State().History()
	for {
		msgs := state.Messages.GetOr(run.State(), nil)
		pending := transcript.Pending(msgs)
		order := fmt.Sprint("W", 1+refunded(msgs))
		switch {
		case len(pending) > 0:
			for _, call := range pending {
				if !r.life.lives() {
					return errDead
				}
				r.bank.refund(order, r.key(run, call))
				if err := history.Answer(state.ToolResult(call, `"refunded"`)); err != nil {
					return err
				}
			}
		case order == "W3":
			return nil
		default: // the model sees what is not refunded
			call := state.ToolCall{ID: r.callID(*r.asked, order), Name: "refund", Input: state.JSONText(order)}
			*r.asked++
			if err := history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}); err != nil {
				return err
			}
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
	}
}

// refunded returns the number of refunds that a conversation knows of.
func refunded(msgs []state.Message) int {
	n := 0
	for _, m := range msgs {
		if m, ok := m.(state.ToolResultMessage); ok && !m.IsError() {
			n++
		}
	}
	return n
}

func byKey(_ *workspace.Run, call state.ToolCall) string { return call.Key }

func byCall(run *workspace.Run, call state.ToolCall) string { return run.ID() + "/" + call.ID }

func byStep(run *workspace.Run, _ state.ToolCall) string {
	return fmt.Sprint(run.ID(), "/", run.Step())
}

// refundCase is one of the cases of TestIdempotencyKeysHold: where the first process
// dies, and the second one, if it is not 0.
type refundCase struct {
	first, second int
	reply         bool
}

// refundRow is a way to derive idempotency keys.
type refundRow struct {
	name  string
	opts  workspace.Options
	key   func(run *workspace.Run, call state.ToolCall) string
	id    func(asked int, order string) string
	twice bool // refunds are made twice
}

// Wherever processes die, no order is refunded twice if the idempotency key is
// the right one: that of the call, whatever id the model gives it. With
// TakeoverRestart, a run makes other calls than the one before, and the right one is
// the id of the run with the step, or with an id that the model repeats.
func TestIdempotencyKeysHold(t *testing.T) {
	restart := workspace.Options{Takeover: workspace.TakeoverRestart}
	unique := func(asked int, _ string) string { return fmt.Sprint("call", asked) }
	perOrder := func(_ int, order string) string { return "refund-" + order }
	one := func(int, string) string { return "refund:0" }
	none := func(int, string) string { return "" }
	rows := []refundRow{
		{"the key of the call", workspace.Options{}, byKey, unique, false},
		{"the key of the call, and a model that repeats its ids", workspace.Options{}, byKey, one, false},
		{"the key of the call, and a model without ids", workspace.Options{}, byKey, none, false},
		{"the key of the call, and a message that is given up and sent again", workspace.Options{Attempts: 1}, byKey, one, false},
		{"TakeoverRestart, and the key of the call", restart, byKey, unique, true},
		{"TakeoverRestart, and the step", restart, byStep, unique, false},
		{"TakeoverRestart, and a model that repeats its ids", restart, byCall, perOrder, false},
		{"TakeoverRestart, and a model that gives new ids", restart, byCall, unique, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { refundEverywhere(t, row) })
	}
}

// refundEverywhere lets the first process die at each of its steps.
func refundEverywhere(t *testing.T, row refundRow) {
	twice, crashes, step := 0, 0, 6
	if effort.Runs(4) == 4 && !testing.Short() { // as CI does
		step = 3
	}
	for first, died := 1, true; died; first++ {
		died = false
		for second := 0; second < 12; second += step {
			for _, reply := range []bool{false, true} {
				more, dead := refundOnce(t, row, refundCase{first, second, reply})
				twice += more
				if dead {
					died = true
					crashes++
				}
			}
		}
	}
	t.Logf("%d crashes, %d refunds made twice", crashes, twice)
	require.Greater(t, crashes, 5)
	require.Equal(t, row.twice, twice > 0, "%d of %d", twice, crashes)
}

// refundOnce returns the number of orders that were refunded more than once, and
// whether the first process has died.
func refundOnce(t *testing.T, row refundRow, c refundCase) (twice int, died bool) {
	lives := []*life{{left: c.first, reply: c.reply}, {left: c.second, reply: c.reply}, {left: -1}}
	if c.second == 0 {
		lives = []*life{lives[0], lives[2]}
	}
	b := &bank{refunds: map[string]int{}, keys: map[string]bool{}}
	r := refunder{bank: b, callID: row.id, key: row.key, asked: new(int)}
	onStore(t, func(t *testing.T, db store.Store, _ time.Duration) { refundThroughCrashes(t, db, row, r, lives) })
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range 2 {
		n := b.refunds[fmt.Sprint("W", i+1)]
		require.Positive(t, n)
		if n > 1 {
			twice++
		}
	}
	return twice, !lives[0].lives()
}

// refundThroughCrashes lets processes handle one message, one after the other
// until the last, which does not die.
func refundThroughCrashes(t testing.TB, db store.Store, row refundRow, r refunder, lives []*life) {
	for _, life := range lives {
		r.life = life
		opts := row.opts
		opts.Run, opts.Attempts = r.run, cmp.Or(opts.Attempts, 1000)
		m := open(t, life.seenBy(plain{Store: db}), opts)
		var err error
		for tries := 0; tries < 2 && err == nil; tries++ { // the sender tries again, also if the message was given up
			if _, err = m.Submit(t.Context(), "ann", text("1")); err == nil {
				err = errors.Join(settle(t.Context(), m), m.Wait(t.Context()))
			}
		}
		if life.lives() {
			require.NoError(t, err)
		}
		require.NoError(t, m.Close())
	}
	v := view(t, open(t, db, workspace.Options{}), "ann")
	require.Nil(t, v.Run)
	require.Empty(t, v.DeadLetters)
	require.Equal(t, 2, refunded(state.Messages.GetOr(v.State(), nil)))
}

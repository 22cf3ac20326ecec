package decisions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// bank pays, and drops what it has seen under a key.
type bank struct {
	mu       sync.Mutex
	paid     []string // "to amount by", in the order of the payments
	calls    int
	seen     map[string]bool
	hold     func(ctx context.Context) error
	schema   *state.Schema
	rate     *state.Field[int]
	options  []tool.Option
	fails    error // of the request behind a result, once
	failures int
}

type payment struct {
	To     string `json:"to"`
	Amount int    `json:"amount"`
	Rate   int    `json:"rate,omitempty"`
}

func newBank(options ...tool.Option) *bank {
	rate := &state.Field[int]{Name: "rate", Read: state.Public, Write: state.Public}
	return &bank{
		seen: map[string]bool{}, rate: rate, options: options,
		schema: state.MustSchema(rate, state.Team{"boss": {"desk", "clerk"}}, &state.Field[string]{Name: "note", Write: state.Public, Read: state.Public}),
	}
}

func (b *bank) tool() *tool.Tool {
	pay := func(ctx context.Context, in payment) (string, error) {
		call, _ := tool.CallOf(ctx)
		b.mu.Lock()
		b.calls++
		if !b.seen[call.Key] {
			b.seen[call.Key] = true
			b.paid = append(b.paid, fmt.Sprintf("%s %d %s", in.To, in.Amount, call.ApprovedBy))
		}
		b.mu.Unlock()
		if b.hold != nil {
			if err := b.hold(ctx); err != nil {
				return "", err
			}
		}
		return "paid " + in.To, nil
	}
	approval := tool.NeedsApproval(func(_ context.Context, in payment) (string, bool) { return "money for " + in.To, in.Amount >= 100 })
	return tool.Must(tool.New("pay", "Pays.", pay, append([]tool.Option{approval, tool.From(b.rate, "rate")}, b.options...)...))
}

// answer is what a model says for the n-th time.
func (b *bank) manager(t *testing.T, db store.Store, opts workspace.Options, answers ...[]state.ToolCall) *workspace.Manager {
	t.Helper()
	asked := 0
	ask := func(ctx context.Context, turn *loop.Turn) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		msgs := state.Messages.GetOr(turn.State(), nil)
		if _, behind := msgs[len(msgs)-1].(state.ToolResultMessage); behind && b.fails != nil && b.failures > 0 {
			b.failures--
			return b.fails
		}
		var said state.Message = state.AssistantText("done")
		if asked < len(answers) && msgs[len(msgs)-1].Role() == "user" {
			said = state.ToolCalls(answers[asked]...)
			asked++
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
	}
	opts.Schema = b.schema
	opts.Run = workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: ask, Tools: []*tool.Tool{b.tool()}}}})
	m, err := workspace.Open(t.Context(), db, &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func pay(id, to string) state.ToolCall {
	return state.ToolCall{ID: id, Name: "pay", Input: state.JSON(fmt.Sprintf(`{"to":%q,"amount":500}`, to))}
}

func handle(t *testing.T, m *workspace.Manager, msg workspace.Message) workspace.Outcome {
	t.Helper()
	out, err := m.Handle(t.Context(), "ann", msg)
	require.NoError(t, err)
	return out
}

func say(text string) workspace.Message { return workspace.Message{Content: state.UserText(text)} }

func decide(d ...tool.Decision) workspace.Message {
	return workspace.Message{Decisions: d, Agent: "boss"}
}

// waiting returns the cards that a person is shown, by whom the money is for.
func waiting(t *testing.T, m *workspace.Manager) (cards []workspace.Suspended) {
	t.Helper()
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	return v.Suspended()
}

func reasons(cards []workspace.Suspended) (texts []string) {
	for _, c := range cards {
		texts = append(texts, c.Reason)
	}
	return texts
}

// Each row is what a provider may say: calls without ids, one id twice in an
// answer, and one id in several answers.
var conversations = map[string][][]state.ToolCall{
	"no ids":                    {{pay("", "ann"), pay("", "bob"), pay("", "mallory")}},
	"one id in an answer":       {{pay("c1", "ann"), pay("c1", "bob"), pay("c1", "mallory")}},
	"one id in several answers": {{pay("pay:0", "ann")}, {pay("pay:0", "bob")}, {pay("pay:0", "mallory")}},
	"no ids in several answers": {{pay("", "ann")}, {pay("", "bob"), pay("", "mallory")}},
	"unique ids":                {{pay("a", "ann"), pay("b", "bob"), pay("c", "mallory")}},
}

func TestADecisionHitsTheCallThatWasShown(t *testing.T) {
	for name, answers := range conversations {
		for shown := range 3 {
			t.Run(fmt.Sprintf("%s/%d", name, shown), func(t *testing.T) {
				b := newBank()
				m := b.manager(t, store.NewMemory(), workspace.Options{}, answers...)
				for range answers {
					handle(t, m, say("Pay them."))
				}
				names := []string{"ann", "bob", "mallory"}
				cards := waiting(t, m)
				require.Equal(t, []string{"money for ann", "money for bob", "money for mallory"}, reasons(cards))

				handle(t, m, decide(tool.Approve(cards[shown].Key)))
				require.Equal(t, []string{names[shown] + " 500 boss"}, b.paid)
				rest := waiting(t, m)
				require.Len(t, rest, 2)
				for _, c := range rest {
					require.NotEqual(t, cards[shown].Key, c.Key)
				}
				_, err := m.Handle(t.Context(), "ann", decide(tool.Approve(cards[shown].Key)))
				require.ErrorIs(t, err, workspace.ErrNotSuspended)
				require.ErrorContains(t, err, rest[0].Key, "it lists the keys that wait")

				handle(t, m, workspace.Message{Decisions: []tool.Decision{tool.Refuse(rest[0].Key, "too dear"), tool.AnswerWith(rest[1].Key, `"paid by hand"`)}})
				require.Empty(t, waiting(t, m))
				require.Len(t, b.paid, 1)
				v, err := m.View(t.Context(), "ann")
				require.NoError(t, err)
				results := map[string]string{}
				for _, msg := range state.Messages.GetOr(v.State(), nil) {
					if r, ok := msg.(state.ToolResultMessage); ok {
						results[r.Call().Key] = r.Text()
					}
				}
				require.Equal(t, map[string]string{
					cards[shown].Key: "paid " + names[shown],
					rest[0].Key:      "The call was refused by a person: too dear",
					rest[1].Key:      "paid by hand",
				}, results)
			})
		}
	}
}

func TestIDsAndNamesAreNoDecisions(t *testing.T) {
	b := newBank()
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
	handle(t, m, say("Pay."))
	key := waiting(t, m)[0].Key
	for _, id := range []string{"c1", "pay"} {
		_, err := m.Handle(t.Context(), "ann", decide(tool.Approve(id)))
		require.ErrorIs(t, err, state.ErrUnknownCall)
		require.ErrorContains(t, err, key)
	}
	require.Empty(t, b.paid)
}

func TestAnApprovalWithOtherArgumentsKeepsTheRecordedCall(t *testing.T) {
	b := newBank()
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
	handle(t, m, say("Pay."))
	card := waiting(t, m)[0]
	handle(t, m, decide(tool.ApproveWith(card.Key, `{"to":"ann","amount":120}`)))
	require.Equal(t, []string{"ann 120 boss"}, b.paid)
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	msgs := state.Messages.GetOr(v.State(), nil)
	require.Equal(t, card.Input, msgs[1].(state.ToolCallMessage).Calls()[0].Input)
	require.Contains(t, msgs[2].Text(), `{"to":"ann","amount":120}`)
	verdict, ok := msgs[2].Extra("decision")
	require.True(t, ok)
	require.JSONEq(t, `{"kind":"approve","by":"boss","input":{"to":"ann","amount":120}}`, string(verdict))
}

func TestOtherArgumentsMustFitTheTool(t *testing.T) {
	b := newBank()
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
	handle(t, m, say("Pay."))
	handle(t, m, decide(tool.ApproveWith(waiting(t, m)[0].Key, `{"to":"ann","amount":1,"rate":3}`)))
	require.Empty(t, b.paid)
	require.Contains(t, waiting(t, m)[0].Reason, "rate", "the call waits and says what is wrong")
}

func TestAnApprovalIsVoidIfAnInjectedValueChanges(t *testing.T) {
	b := newBank()
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
	handle(t, m, say("Pay."))
	card := waiting(t, m)[0]
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return b.rate.Set(w.State(), 7) }))
	handle(t, m, decide(tool.Approve(card.Key)))
	require.Empty(t, b.paid)
	again := waiting(t, m)
	require.Len(t, again, 1)
	handle(t, m, decide(tool.Approve(again[0].Key)))
	require.Equal(t, []string{"ann 500 boss"}, b.paid)
}

func TestACallWhoseMessageWasEditedWaitsNoLonger(t *testing.T) {
	for name, edit := range map[string]func(msgs []state.Message) []state.Message{
		"edited": func(msgs []state.Message) []state.Message {
			call := msgs[1].(state.ToolCallMessage).Calls()[0]
			call.Input = `{"to":"mallory","amount":1}`
			msgs[1] = state.ToolCalls(call)
			return msgs
		},
		"removed": func(msgs []state.Message) []state.Message { return msgs[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBank()
			m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
			handle(t, m, say("Pay."))
			card := waiting(t, m)[0]
			require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
				return state.Messages.Replace(w.State(), edit(state.Messages.GetOr(w.State(), nil)))
			}))
			require.Empty(t, waiting(t, m))
			_, err := m.Handle(t.Context(), "ann", decide(tool.Approve(card.Key)))
			require.ErrorIs(t, err, workspace.ErrNotSuspended)
			handle(t, m, say("Hello?"))
			require.Empty(t, b.paid)
			require.Empty(t, waiting(t, m))
		})
	}
}

func TestWhoMayDecide(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []tool.Option
		agent   string
		denied  bool
	}{
		{"the host", []tool.Option{tool.DecidedBy("boss")}, "", false},
		{"one of the scope", []tool.Option{tool.DecidedBy("boss")}, "boss", false},
		{"another one", []tool.Option{tool.DecidedBy("boss")}, "clerk", true},
		{"a stranger", []tool.Option{tool.DecidedBy("nobody")}, "nobody", true},
		{"a stranger without a scope", nil, "nobody", true},
		{"one of the Team without a scope", nil, "clerk", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBank(row.options...)
			m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
			handle(t, m, say("Pay."))
			_, err := m.Handle(t.Context(), "ann", workspace.Message{Decisions: []tool.Decision{tool.Approve(waiting(t, m)[0].Key)}, Agent: row.agent})
			if row.denied {
				require.ErrorIs(t, err, state.ErrDenied)
				require.Empty(t, b.paid)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"ann 500 " + row.agent}, b.paid)
		})
	}
}

func TestADecisionAfterTheExpiryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(tool.Expires(time.Hour))
		m := b.manager(t, store.NewMemory(), workspace.Options{TTL: 7 * time.Second}, []state.ToolCall{pay("", "ann"), pay("", "bob")})
		handle(t, m, say("Pay."))
		cards := waiting(t, m)
		time.Sleep(time.Hour + time.Nanosecond) // between two looks at what has expired
		_, err := m.Submit(t.Context(), "ann", decide(tool.Approve(cards[0].Key)))
		require.ErrorIs(t, err, workspace.ErrExpired)
		require.Empty(t, b.paid)
	})
}

func TestAnInterruptedApprovalIsMadeUnderOneKey(t *testing.T) {
	b := newBank()
	entered := make(chan struct{}, 2)
	b.hold = func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{pay("c1", "ann")})
	handle(t, m, say("Pay."))
	card := waiting(t, m)[0]
	_, err := m.Submit(t.Context(), "ann", decide(tool.Approve(card.Key)))
	require.NoError(t, err)
	<-entered
	b.hold = nil
	out := handle(t, m, workspace.Message{Content: state.UserText("Wait!"), WhenBusy: workspace.BusyInterrupt})
	require.Equal(t, workspace.StatusDone, out.Status)
	again := waiting(t, m)
	require.Len(t, again, 1, "the approval is undone, and somebody is asked")
	require.Contains(t, again[0].Reason, "may have been made")
	handle(t, m, decide(tool.Approve(again[0].Key)))
	require.Equal(t, []string{"ann 500 boss"}, b.paid, "the bank drops what it has seen under the key")
}

func TestARetryGoesOn(t *testing.T) {
	b := newBank()
	b.fails, b.failures = errors.New("400 Bad Request"), 1
	m := b.manager(t, store.NewMemory(), workspace.Options{Attempts: 1}, []state.ToolCall{
		{ID: "c1", Name: "pay", Input: `{"to":"ann","amount":5}`},
	})
	msg := workspace.Message{ID: "m1", Content: state.UserText("Pay 5.")}
	_, err := m.Handle(t.Context(), "ann", msg)
	require.Error(t, err)
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, v.DeadLetters[0].GoesOn)
	require.NoError(t, m.Retry(t.Context(), "ann", "m1"))
	out, err := m.Await(t.Context(), "ann", "m1")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	require.Equal(t, 1, b.calls, "an answered call is not made again")
	v, err = m.View(t.Context(), "ann")
	require.NoError(t, err)
	users := slices.DeleteFunc(state.Messages.GetOr(v.State(), nil), func(m state.Message) bool { return m.Role() != "user" })
	require.Len(t, users, 1, "what the user has said stands once")
}

func TestARetryBehindOtherMessagesAsksAgain(t *testing.T) {
	b := newBank()
	b.fails, b.failures = errors.New("400 Bad Request"), 1
	m := b.manager(t, store.NewMemory(), workspace.Options{Attempts: 1}, []state.ToolCall{
		{ID: "c1", Name: "pay", Input: `{"to":"ann","amount":5}`},
	})
	_, err := m.Handle(t.Context(), "ann", workspace.Message{ID: "m1", Content: state.UserText("Pay 5.")})
	require.Error(t, err)
	handle(t, m, say("Hello?"))
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.False(t, v.DeadLetters[0].GoesOn)
	require.NoError(t, m.Retry(t.Context(), "ann", "m1"))
	_, err = m.Await(t.Context(), "ann", "m1")
	require.NoError(t, err)
	require.Equal(t, 1, b.calls)
	v, err = m.View(t.Context(), "ann")
	require.NoError(t, err)
	msgs := state.Messages.GetOr(v.State(), nil)
	again, ok := msgs[len(msgs)-2].Extra("again")
	require.True(t, ok)
	require.Equal(t, state.JSON("true"), again)
}

func TestOnceIsNeverMadeTwice(t *testing.T) {
	b := newBank(tool.Once())
	entered := make(chan struct{}, 2)
	b.hold = func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	m := b.manager(t, store.NewMemory(), workspace.Options{}, []state.ToolCall{{ID: "c1", Name: "pay", Input: `{"to":"ann","amount":5}`}})
	_, err := m.Submit(t.Context(), "ann", say("Pay 5."))
	require.NoError(t, err)
	<-entered
	b.hold = nil
	handle(t, m, workspace.Message{Content: state.UserText("Wait!"), WhenBusy: workspace.BusyInterrupt})
	cards := waiting(t, m)
	require.Len(t, cards, 1)
	require.True(t, cards[0].Begun)
	_, err = m.Handle(t.Context(), "ann", decide(tool.Approve(cards[0].Key)))
	require.ErrorIs(t, err, workspace.ErrNotSuspended)
	require.Equal(t, 1, b.calls)
	handle(t, m, decide(tool.MakeAgain(cards[0].Key)))
	require.Equal(t, 2, b.calls)
	require.Empty(t, waiting(t, m))
}

// deadStore is the store of a process that dies.
type deadStore struct {
	store.Store
	dead atomic.Bool
}

func (s *deadStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if s.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Batch(ctx, writes)
}

// A call of a tool with Once is not made by the process that takes the run over,
// although nobody knows whether the one before has made it.
func TestOnceIsNotMadeByAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(tool.Once())
		died := make(chan struct{})
		b.hold = func(context.Context) error { <-died; return errors.New("dead") }
		defer close(died)
		db := store.NewMemory()
		first := &deadStore{Store: db}
		m := b.manager(t, first, workspace.Options{}, []state.ToolCall{{ID: "c1", Name: "pay", Input: `{"to":"ann","amount":5}`}})
		_, err := m.Submit(t.Context(), "ann", say("Pay 5."))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, b.calls)
		first.dead.Store(true)
		other := b.manager(t, db, workspace.Options{})
		time.Sleep(time.Minute)
		cards := waiting(t, other)
		require.Len(t, cards, 1)
		require.True(t, cards[0].Begun)
		require.Equal(t, 1, b.calls)
		handle(t, other, workspace.Message{Decisions: []tool.Decision{tool.AnswerWith(cards[0].Key, `"the bank says that it was paid"`)}})
		require.Empty(t, waiting(t, other))
		require.Equal(t, 1, b.calls)
	})
}

func TestAModelMayNotCallWhatItMayNotUse(t *testing.T) {
	calls := 0
	secret := &state.Field[string]{Name: "ledger"}
	schema := state.MustSchema(secret, state.Team{"desk": nil})
	book := tool.Must(tool.New("book", "Books.", func(context.Context, struct{}) (string, error) {
		calls++
		return "x", nil
	}, tool.To(secret, "")))
	st := state.New(schema)
	require.NoError(t, st.As("desk").History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "c1", Name: "book", Input: "{}"})}}))
	results, err := tool.Answer(t.Context(), st.As("desk"), []*tool.Tool{book}, st.As("desk").History().Pending())
	require.NoError(t, err)
	require.ErrorIs(t, results[0].Err, state.ErrDenied)
	require.Zero(t, calls)
	_, err = tool.Answer(t.Context(), st.As("desk"), []*tool.Tool{book}, []state.ToolCall{results[0].Message.Call()})
	require.ErrorIs(t, err, state.ErrAnswered)
}

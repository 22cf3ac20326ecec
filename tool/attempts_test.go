package tool_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

type wait struct {
	D time.Duration `json:"d"`
}

// Each row is a function that fails for some time, and what comes of one call.
func TestAttempts(t *testing.T) {
	for _, row := range []struct {
		name     string
		options  []tool.Option
		fails    int // how often
		err      error
		attempts int
		took     time.Duration
		failed   string
	}{
		{"no option", nil, 1, io.ErrUnexpectedEOF, 1, 0, "unexpected EOF"},
		{"it passes", []tool.Option{tool.Attempts(3)}, 2, io.ErrUnexpectedEOF, 3, 3 * time.Second, ""},
		{"a timeout", []tool.Option{tool.Attempts(3)}, 1, context.DeadlineExceeded, 2, time.Second, ""},
		{"it does not pass", []tool.Option{tool.Attempts(3)}, 9, io.ErrUnexpectedEOF, 3, 3 * time.Second, "unexpected EOF"},
		{"it is final", []tool.Option{tool.Attempts(3)}, 1, errors.New("no such order"), 1, 0, "no such order"},
		{"the service names a time", []tool.Option{tool.Attempts(3)}, 1, loop.Retryable(errors.New("busy"), time.Minute), 2, time.Minute, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := map[string]int{}
				refund := tool.Must(tool.New("refund", "Refunds.", func(ctx context.Context, in map[string]any) (string, error) {
					call, _ := tool.CallOf(ctx)
					keys[call.Key]++
					require.Equal(t, map[string]any{"to": "ann"}, in)
					clear(in) // each attempt has an input of its own
					if keys[call.Key] <= row.fails {
						return "", row.err
					}
					return "refunded", nil
				}, row.options...))
				began := time.Now()
				results, err := tool.Run(t.Context(), state.New(nil), []*tool.Tool{refund}, []state.ToolCall{{ID: "1", Name: "refund", Input: `{"to":"ann"}`}})
				require.NoError(t, err)
				require.Len(t, keys, 1)
				for _, n := range keys {
					require.Equal(t, row.attempts, n)
				}
				require.Equal(t, row.took, time.Since(began))
				if row.failed != "" {
					require.ErrorContains(t, results[0].Err, row.failed)
				} else {
					require.NoError(t, results[0].Err)
				}
			})
		})
	}
}

// A function that takes too long is left behind, whether it listens to its context
// or not, and the others have their results.
func TestTimeout(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []tool.Option
		loop    time.Duration // CallTimeout
		late    string
	}{
		{"of the tool", []tool.Option{tool.Timeout(time.Second)}, 0, "1s"},
		{"of the Loop", nil, 2 * time.Second, "2s"},
		{"the tool says so itself", []tool.Option{tool.Timeout(time.Second)}, time.Hour, "1s"},
	} {
		for _, deaf := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					slow := tool.Must(tool.New("slow", "Waits.", func(ctx context.Context, in wait) (string, error) {
						if deaf {
							time.Sleep(in.D)
							return "late", nil
						}
						select {
						case <-ctx.Done():
							return "", ctx.Err()
						case <-time.After(in.D):
							return "in time", nil
						}
					}, row.options...))
					asked := 0
					l := &loop.Loop{CallTimeout: row.loop, Agents: map[string]loop.Agent{"desk": {
						Tools: []*tool.Tool{slow},
						Ask: func(ctx context.Context, turn *loop.Turn) error {
							if asked++; asked > 1 {
								return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("done")}})
							}
							return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(
								state.ToolCall{ID: "1", Name: "slow", Input: `{"d":3600000000000}`}, state.ToolCall{ID: "2", Name: "slow", Input: `{"d":1}`},
							)}})
						},
					}}}
					st := state.New(nil)
					require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
					defer time.Sleep(2 * time.Hour) // until what was left behind has returned
					_, err := l.Run(t.Context(), st)
					require.NoError(t, err)
					msgs := state.Messages.GetOr(st, nil)
					require.Contains(t, msgs[2].Text(), "the limit is "+row.late+", and the call may have been made")
					require.Equal(t, map[bool]string{true: "late", false: "in time"}[deaf], msgs[3].Text())
				})
			})
		}
	}
}

func TestAttemptsAreChecked(t *testing.T) {
	for want, options := range map[string][]tool.Option{
		"Attempts: 0 is not a number of attempts": {tool.Attempts(0)},
		"Attempts: the tool has Once":             {tool.Once(), tool.Attempts(2)},
		"Once: the tool has Attempts":             {tool.Attempts(2), tool.Once()},
		"Timeout: -1ns is not a time":             {tool.Timeout(-1)},
	} {
		_, err := tool.New("t", "", func(context.Context, wait) (string, error) { return "", nil }, options...)
		require.ErrorContains(t, err, want)
	}
}

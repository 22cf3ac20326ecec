package sdks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// An SDK that repeats a request, or a program that does, gets one answer.
func TestARetryIsRecordedOnce(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		p := newProvider(t)
		p.trouble = func(n int64) fault {
			if n == 1 {
				return fault{status: http.StatusServiceUnavailable}
			}
			return fault{}
		}
		ask, st := s.model(t, p, streamed, &wire.Transport{}), state.New(nil)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where are #1 and #2?")}))
		ctx := state.NewContext(t.Context(), st)
		if err := ask(ctx, "", never); err != nil {
			require.Zero(t, st.History().Len())
			require.NoError(t, ask(ctx, "", never))
		}
		require.Equal(t, int64(2), p.requests.Load())
		require.Equal(t, 1, st.History().Len())
		requireRecorded(t, p, st)
	})
}

// Each stream is cut after each of its events.
func TestCutStreamsAreErrorsOfTheSDK(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			p := newProvider(t)
			ask := s.model(t, p, true, &wire.Transport{Base: unpooled(t)})
			begin := func() *state.State {
				st := state.New(nil)
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where are #1 and #2?")}))
				return st
			}
			require.NoError(t, ask(state.NewContext(t.Context(), begin()), "", never))
			events, _ := p.streamed.Load(s.api)
			for after := 1; after < events.(int); after++ {
				for _, abrupt := range []bool{false, true} {
					p.trouble = func(int64) fault { return fault{after: after, abrupt: abrupt} }
					st := begin()
					err := ask(state.NewContext(t.Context(), st), "", never)
					if s.api == "chat" && after == events.(int)-1 && !abrupt {
						require.NoError(t, err) // the model has said why it stopped; only "[DONE]" is missing
						require.Equal(t, 1, st.History().Len())
						continue
					}
					require.Zero(t, st.History().Len(), "cut after event %d", after)
					require.Len(t, state.Messages.GetOr(st, nil), 1)
					require.Error(t, err, "cut after event %d, abruptly: %v", after, abrupt)
				}
			}
		})
	}
}

func TestCutResponsesAreErrorsOfTheSDK(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			p := newProvider(t)
			p.trouble = func(int64) fault { return fault{after: 1} }
			ask, st := s.model(t, p, false, &wire.Transport{RecordOnly: true, Base: unpooled(t)}), state.New(nil)
			require.Error(t, ask(state.NewContext(t.Context(), st), "Where are #1 and #2?", never))
			require.Zero(t, st.History().Len())
		})
	}
}

// stopEarly are the SDKs that do not read the end of a body, where the error of an
// answer is that is not recorded: whole, streamed, or both.
var stopEarly = map[string]struct{ whole, streamed bool }{
	"openai-go Chat":        {streamed: true},
	"go-openai":             {whole: true, streamed: true},
	"langchaingo OpenAI":    {whole: true, streamed: true},
	"langchaingo Anthropic": {whole: true},
}

// An answer that the State refuses is not asked for again, and paid for again. It is an
// error of each SDK that reads the whole body.
func TestAnswersThatAreRefusedAreErrorsOfTheSDK(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		p := newProvider(t)
		ask, st := s.model(t, p, streamed, &wire.Transport{RecordOnly: true}), state.New(nil).Snapshot()
		err := ask(state.NewContext(t.Context(), st), "Where are #1 and #2?", never)
		stops := stopEarly[s.name].whole
		if streamed {
			stops = stopEarly[s.name].streamed
		}
		require.Equal(t, stops, err == nil, "%v", err)
		require.Equal(t, int64(1), p.requests.Load())
	})
}

// A client leaves at the last event, while the server keeps the connection.
func TestClientsThatStopAtTheLastEvent(t *testing.T) {
	for _, s := range sdks {
		if s.api == "gemini" || s.name == "langchaingo Anthropic" {
			continue // no last event; it reads to the end of the body
		}
		t.Run(s.name, func(t *testing.T) {
			p := newProvider(t)
			p.linger = true
			ask, st := s.model(t, p, true, &wire.Transport{Base: unpooled(t)}), state.New(nil)
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where are #1 and #2?")}))
			require.NoError(t, ask(state.NewContext(t.Context(), st), "", func() bool { return st.History().Len() > 0 }))
			require.Equal(t, 1, st.History().Len())
			requireRecorded(t, p, st)
		})
	}
}

// unpooled returns a transport without connections of other tests.
func unpooled(t testing.TB) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 100
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// 100 users make 20 calls each, at once, in all kinds of trouble. Each answer
// that a user has got is recorded as the provider has sent it, and nothing else.
func TestLoad(t *testing.T) {
	const users, calls = 100, 20
	p := newProvider(t)
	p.trouble = func(n int64) fault {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		switch r.IntN(10) {
		case 0:
			return fault{status: http.StatusServiceUnavailable}
		case 1, 2:
			return fault{after: 1 + r.IntN(8), abrupt: r.IntN(2) == 0}
		}
		return fault{}
	}
	transport := &wire.Transport{Window: &transcript.Window{Target: 2000, Tokens: func(state.Message) int { return 100 }}, Base: unpooled(t)}
	var wg sync.WaitGroup
	states := make([]*state.State, users)
	var answered, failed, left [users]int
	for u := range users {
		s, st := sdks[u%len(sdks)], state.New(nil)
		whole, streamed := s.open(t, p.URL, &http.Client{Transport: transport})
		states[u] = st
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(u), 2))
			ctx := state.NewContext(t.Context(), st)
			for range calls {
				if err := prepare(st); err != nil {
					t.Error(err)
					return
				}
				before, leaves := st.History().Len(), false
				ask, stay := whole, 1+r.IntN(12)
				if r.IntN(3) > 0 {
					ask = streamed
				}
				err := ask(ctx, "", func() bool {
					stay--
					leaves = leaves || stay == 0 && u%2 == 0
					return leaves
				})
				got := st.History().Len() - before
				switch {
				case leaves:
					left[u]++
					if got < 0 || got > 1 {
						t.Errorf("%s: %d answers are recorded of a client that left", s.name, got)
					}
				case err != nil:
					failed[u]++
					if got != 0 {
						t.Errorf("%s: an answer is recorded although there was an error: %v", s.name, err)
					}
				case got != 1:
					t.Errorf("%s: %d answers are recorded", s.name, got)
				default:
					answered[u]++
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, p.refused)
	total := map[string]int{}
	for u, st := range states {
		total["answered"] += answered[u]
		total["failed"] += failed[u]
		total["left"] += left[u]
		total["recorded"] += st.History().Len()
		requireLoaded(t, p, st)
	}
	t.Logf("%d requests: %v", p.requests.Load(), total)
	require.Greater(t, total["answered"], users*calls/3)
	require.Positive(t, total["failed"])
	require.Positive(t, total["left"])
}

// prepare does what a program does between two calls of a model: it answers the
// calls of tools, or lets the user speak.
func prepare(st *state.State) error {
	msgs := state.Messages.GetOr(st, nil)
	if calls := transcript.Pending(msgs); len(calls) > 0 {
		for _, r := range must(tool.Run(context.Background(), st, []*tool.Tool{lookup}, calls)) {
			if err := st.History().Answer(r.Message); err != nil {
				return err
			}
		}
		return nil
	}
	if n := len(msgs); n > 0 {
		if _, ok := msgs[n-1].(state.TextMessage); !ok || msgs[n-1].Role() == "user" {
			return nil
		}
	}
	return state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprintf("Where are #1 and #2? (%d)", len(msgs)))})
}

// requireLoaded is requireRecorded for streams that may have ended early, but
// not before the model had said why it stopped.
func requireLoaded(t *testing.T, p *provider, st *state.State) {
	t.Helper()
	ids := map[string]bool{}
	for _, r := range st.History().All() {
		sent, ok := p.sentAs(r.ID)
		require.True(t, ok)
		require.False(t, ids[r.ID], "%q is recorded twice", r.ID)
		ids[r.ID] = true
		require.True(t, len(r.Raw) <= len(sent) && sent[:len(r.Raw)] == r.Raw)
		require.Contains(t, []string{"", "\n", "data: [DONE]\n\n"}, sent[len(r.Raw):])
	}
}

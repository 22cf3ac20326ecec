package sdks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

type order struct {
	Order string `json:"order"`
}

var lookup = tool.Must(tool.New("lookup", "Look up an order.",
	func(_ context.Context, in order) (string, error) { return in.Order + " is sent", nil }))

func never() bool { return false }

// converse lets the model answer a user, whose turn is in the State.
func converse(ctx context.Context, st *state.State, ask model) error {
	ctx = state.NewContext(ctx, st)
	for range 5 {
		if err := ask(ctx, "", never); err != nil {
			return err
		}
		calls := transcript.Pending(state.Messages.GetOr(st, nil))
		if len(calls) == 0 {
			return nil
		}
		for _, r := range must(tool.Run(ctx, st, []*tool.Tool{lookup}, calls)) {
			if err := st.History().Answer(r.Message); err != nil {
				return err
			}
		}
	}
	return errors.New("the loop has no end")
}

// each runs a test for each SDK, whole and streamed.
func each(t *testing.T, test func(t *testing.T, s sdk, streamed bool)) {
	for _, s := range sdks {
		t.Run(s.name+"/whole", func(t *testing.T) { test(t, s, false) })
		t.Run(s.name+"/streamed", func(t *testing.T) { test(t, s, true) })
	}
}

// open returns the model of an SDK whose client has the transport.
func (s sdk) model(t testing.TB, p *provider, streamed bool, transport http.RoundTripper) model {
	whole, stream := s.open(t, p.URL, &http.Client{Transport: transport})
	if streamed {
		return stream
	}
	return whole
}

// requireRecorded fails unless each result is what the provider has sent, once,
// and neither key nor URL is in the state.
func requireRecorded(t *testing.T, p *provider, st *state.State) {
	t.Helper()
	ids := map[string]bool{}
	for _, r := range st.History().All() {
		sent, ok := p.sentAs(r.ID)
		require.True(t, ok, "no response has the id %q", r.ID)
		require.False(t, ids[r.ID], "%q is recorded twice", r.ID)
		ids[r.ID] = true
		require.Equal(t, strings.TrimSpace(sent), strings.TrimSpace(r.Raw))
		require.False(t, r.StartedAt.IsZero())
		require.NotEmpty(t, r.Output)
	}
	exported, err := st.Export()
	require.NoError(t, err)
	require.NotContains(t, string(exported), apiKey)
}

// A conversation of two turns of the user, each with two parallel calls, is
// accepted by the provider in each step.
func TestToolLoops(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		p := newProvider(t)
		ask := s.model(t, p, streamed, &wire.Transport{})
		st := state.New(nil)
		for turn := range 2 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where are #1 and #2?")}))
			require.NoError(t, converse(t.Context(), st, ask))
			require.Empty(t, p.refused)
			msgs := state.Messages.GetOr(st, nil)
			said := msgs[len(msgs)-1].(state.TextMessage)
			require.Contains(t, string(said.Raw()), "#1 is sent")
			require.Contains(t, string(said.Raw()), "#2 is sent")
			require.Equal(t, 2*(turn+1), st.History().Len())
		}
		requireRecorded(t, p, st)
		last, _ := st.History().Last()
		require.NotEmpty(t, last.Prompt)
		require.Contains(t, string(last.Prompt[0].Raw()), instructions)
		require.Greater(t, len(last.History), 5)
	})
}

// With RecordOnly the request of the SDK is sent byte for byte.
func TestBodiesOfSDKsAreTheSameBytes(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		p := newProvider(t)
		inner := &bodies{next: http.DefaultTransport}
		outer := &bodies{next: &wire.Transport{RecordOnly: true, Base: inner}}
		ask, st := s.model(t, p, streamed, outer), state.New(nil)
		require.NoError(t, ask(state.NewContext(t.Context(), st), "Where are #1 and #2?", never))
		require.Empty(t, p.refused)
		require.Len(t, inner.seen, 1)
		require.Equal(t, outer.seen, inner.seen)
		require.Empty(t, state.Messages.GetOr(st, nil))
		require.Equal(t, 1, st.History().Len())
		requireRecorded(t, p, st)
	})
}

// bodies keeps the bodies of requests.
type bodies struct {
	next http.RoundTripper
	seen []string
}

func (b *bodies) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	b.seen = append(b.seen, string(body))
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	return b.next.RoundTrip(req)
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

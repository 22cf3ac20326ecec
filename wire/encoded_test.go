package wire_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

var formatMarks = map[*provider.Format]string{
	provider.OpenAI: origin.OpenAI, provider.OpenAIResponses: origin.OpenAIResponses,
	provider.Anthropic: origin.Anthropic, provider.Gemini: origin.Gemini,
}

// conversing is a State that models are asked with, and how they are asked.
type conversing struct {
	*rapid.T
	schema    *state.Schema
	card      *state.Field[string]
	st        *state.State
	agent     string
	api       api
	model     string
	tools     []provider.Tool
	transport wire.Transport
	with      map[string]any
	sent      int // requests
}

// do does one of the things that decide on requests.
func (c *conversing) do() {
	msgs := state.Messages.GetOr(c.st, nil)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(c.T, "seed"), 1))
	switch what := rapid.SampledFrom([]string{
		"says", "says", "says", "history", "answer", "edit", "trim", "branch", "fork", "agent", "secret", "with", "mask",
		"format", "model", "window", "withhold", "show", "tools", "profile", "policy", "context",
	}).Draw(c.T, "what"); what {
	case "says":
		require.NoError(c, c.st.UserSays(strings.Repeat(fmt.Sprint("question ", c.sent, " of 4242-4242. "), rng.IntN(20))))
	case "history":
		require.NoError(c, state.Messages.Set(c.st, histories.Valid(rng, formatMarks[c.api.format])))
	case "answer":
		if open := c.st.History().Pending(); len(open) > 0 {
			content := state.JSON(`[{"type":"text","text":"here"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]`)
			if rng.IntN(2) == 0 {
				content = state.JSONText(strings.Repeat("4242-4242 ", rng.IntN(9)))
			}
			require.NoError(c, c.st.History().Answer(state.ToolResult(open[0], content)))
		}
	case "edit":
		if len(msgs) > 0 {
			msgs[rng.IntN(len(msgs))] = state.UserText("edited")
			require.NoError(c, state.Messages.Replace(c.st, msgs))
		}
	case "trim":
		if len(msgs) > 0 {
			require.NoError(c, state.Messages.Replace(c.st, msgs[rng.IntN(len(msgs)):]))
		}
	case "branch":
		require.NoError(c, state.Messages.Replace(c.st, append(msgs[:rng.IntN(len(msgs)+1):len(msgs)], state.UserText("or this"))))
	case "fork":
		c.st = c.st.Fork()
	case "agent":
		c.agent = rapid.SampledFrom([]string{"a", "b"}).Draw(c.T, "agent")
	case "secret":
		require.NoError(c, c.card.Set(c.st, rapid.SampledFrom([]string{"4242-4242", "question", "never"}).Draw(c.T, "secret")))
	case "with":
		c.with = map[string]any{"card": rapid.SampledFrom([]string{"edited", "of"}).Draw(c.T, "with")}
	case "mask":
		c.transport.Redact = !c.transport.Redact
	case "format":
		c.api = apis[rapid.IntRange(0, len(apis)-1).Draw(c.T, "api")]
	case "model":
		c.model = rapid.SampledFrom([]string{"m", "gpt-4o", "claude-opus-4", "mistral-large"}).Draw(c.T, "model")
	case "window":
		c.transport.Window = rapid.SampledFrom([]*transcript.Window{nil, {Target: 400, Keep: 200}, {Target: 2000}}).Draw(c.T, "window")
	case "withhold":
		for _, p := range origin.Pieces(msgs) {
			if p.IsWords && rng.IntN(2) == 0 {
				withheld := map[string]internal.Window{"": {Withheld: []string{"anyone " + p.ID}}}
				require.NoError(c, state.Inside(internal.Key{}).Windows().Set(c.st, withheld))
			}
		}
	case "show":
		require.NoError(c, transcript.ShowWithheld(c.st))
	case "tools":
		c.tools = rapid.SampledFrom([][]provider.Tool{nil, {{Name: "recall", Schema: `{"type":"object"}`}}, {{Name: "find it!", Schema: `{"type":"object"}`}}}).Draw(c.T, "tools")
	case "profile":
		c.transport.Profile = rapid.SampledFrom([]func(context.Context, transcript.Profile) transcript.Profile{nil, func(_ context.Context, p transcript.Profile) transcript.Profile {
			p.NoPrefill, p.Pictures, p.NoMidSystem = true, true, true
			return p
		}}).Draw(c.T, "profile")
	case "policy":
		answers := rng.IntN(2) == 0
		c.transport.Policy = func(context.Context, *state.State) transcript.Policy { return transcript.Policy{AnswerCalls: answers} }
	case "context":
		c.transport.Context = rapid.SampledFrom([]func(context.Context, *state.State) string{nil, say("It is late.")}).Draw(c.T, "context")
	}
}

// request returns what a State's agent sends, and the error instead.
func (c *conversing) request(st *state.State) (sent string, omitted []provider.Omission) {
	if c.with != nil {
		var err error
		st, err = st.With(c.with)
		require.NoError(c, err)
	}
	st = st.As(c.agent)
	transport := c.transport
	transport.Omitted = func(_ context.Context, left []provider.Omission) { omitted = left }
	transport.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		sent = string(body)
		whole := strings.ReplaceAll(c.api.whole, "msg_1", fmt.Sprint("msg_new_", c.sent))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(whole)), Request: req}, err
	})
	body, err := c.api.format.DecodeRequest([]byte(strings.ReplaceAll(c.api.body(false), `"model": "m"`, `"model": "`+c.model+`"`)))
	require.NoError(c, err)
	body.Tools = c.tools
	encoded, _, err := c.api.format.EncodeRequest(body)
	require.NoError(c, err)
	path := strings.ReplaceAll(c.api.path, "models/m", "models/"+c.model)
	resp, err := tryPost(&http.Client{Transport: &transport}, st, "http://host"+path, string(encoded))
	if err != nil {
		return err.Error(), nil
	}
	_, err = readAll(resp)
	require.NoError(c, err)
	resp.Body.Close()
	return sent, omitted
}

// Requests with a conversation of which the requests before had a part are the same,
// byte for byte, as those of a State that nobody was asked with, whatever has changed.
func TestRequestsAreEncodedAsAfresh(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true, Owner: "a", Read: state.Only("a")}
	schema := state.MustSchema(state.Team{"a": nil, "b": nil}, card)
	rapid.Check(t, func(t *rapid.T) {
		c := &conversing{T: t, schema: schema, card: card, st: state.New(schema), agent: "a", model: "m"}
		c.api = apis[rapid.IntRange(0, len(apis)-1).Draw(t, "first api")]
		for c.sent = range 8 {
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				c.do()
			}
			exported, err := c.st.Export()
			require.NoError(t, err)
			fresh, err := state.Import(schema, exported)
			require.NoError(t, err)
			want, wantOmitted := c.request(fresh)
			got, omitted := c.request(c.st)
			require.Equal(t, want, got)
			require.Equal(t, wantOmitted, omitted)
		}
	})
}

// Agents that share a State may ask at the same time.
func TestParallelRequestsAreEncodedAsAfresh(t *testing.T) {
	a := apis[2]
	st := newState(t)
	for i := range 40 {
		require.NoError(t, st.UserSays(fmt.Sprint(strings.Repeat("question ", 9), i)))
	}
	want := map[string]bool{}
	sent := make(chan string)
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		sent <- string(body)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.whole)), Request: req}, err
	})
	client := &http.Client{Transport: &wire.Transport{Base: base}}
	for i := range 8 {
		fork := st.Fork()
		require.NoError(t, fork.UserSays(fmt.Sprint("of fork ", i)))
		msgs, err := state.Messages.Get(fork)
		require.NoError(t, err)
		r, err := a.format.DecodeRequest([]byte(a.body(false)))
		require.NoError(t, err)
		r.Messages = append(r.Messages, msgs...)
		body, _, err := a.format.EncodeRequest(r)
		require.NoError(t, err)
		want[string(body)] = true
		go func() {
			if resp, err := tryPost(client, fork, "http://host"+a.path, a.body(false)); err == nil {
				resp.Body.Close()
			}
		}()
	}
	for range 8 {
		body := <-sent
		require.True(t, want[body], body)
		delete(want, body)
	}
}

// What was encoded ends with the State.
func TestWhatWasEncodedEndsWithTheState(t *testing.T) {
	a := apis[0]
	transport := &wire.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.whole)), Request: req}, nil
	})}
	client, ended := &http.Client{Transport: transport}, make(chan struct{})
	func() {
		st := newState(t, state.UserText(strings.Repeat("word ", 100)), state.AssistantText("Yes."), state.UserText("Hi"))
		resp, err := tryPost(client, st, "http://host"+a.path, a.body(false))
		require.NoError(t, err)
		resp.Body.Close()
		encoded, ok := state.Inside(internal.Key{}).Encoded(st).Load().(*provider.Encoded)
		require.True(t, ok)
		runtime.AddCleanup(encoded, func(int) { close(ended) }, 0)
	}()
	for isOpen := true; isOpen; {
		runtime.GC()
		select {
		case <-ended:
			isOpen = false
		default:
			runtime.Gosched()
		}
	}
	runtime.KeepAlive(client)
}

package sdks

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	stateprovider "github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/wire"
)

// retries are the clients that try again after 529.
var retries = map[string]bool{"openai-go Chat": true, "openai-go Responses": true, "anthropic-sdk-go": true}

// A scripted model stands in for the provider of each SDK, in a bubble: tries
// again and delays take no time.
func TestScriptedModel(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		synctest.Test(t, func(t *testing.T) {
			var replies []statetest.Reply
			if retries[s.name] {
				replies = append(replies, statetest.Status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
			}
			replies = append(replies,
				statetest.Calls(
					state.ToolCall{Name: "lookup", Input: `{"order":"#1"}`},
					state.ToolCall{Name: "lookup", Input: `{"order":"#2, größer"}`},
				),
				statetest.Answer(func(statetest.Request) ([]state.Message, error) {
					time.Sleep(time.Minute)
					return []state.Message{state.AssistantText("Both are sent: größte Freude.")}, nil
				}).Reads("#1 is sent").Reads("#2, größer is sent"),
			)
			m := statetest.NewModel(t, stateprovider.OpenAI, replies...)
			whole, stream := s.open(t, "https://model.test", &http.Client{Transport: &wire.Transport{Base: m}})
			ask := whole
			if streamed {
				ask = stream
			}
			st := state.New(nil)
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where are #1 and #2?")}))
			begun := time.Now()
			require.NoError(t, converse(t.Context(), st, ask))
			require.GreaterOrEqual(t, time.Since(begun), time.Minute)

			msgs := state.Messages.GetOr(st, nil)
			require.Contains(t, string(msgs[len(msgs)-1].Raw()), "größte Freude")
			require.Len(t, m.Requests(), len(replies))
			require.Equal(t, 2, st.History().Len())
			require.Contains(t, m.Sent(""), instructions)
		})
	})
}

// An SDK whose stream breaks off reports it, or its caller does not hear of it.
// The State has what came, as an error of wire.
func TestScriptedModelBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, s sdk, streamed bool) {
		if !streamed || strings.HasPrefix(s.name, "langchaingo") {
			return // langchaingo reads a whole body
		}
		synctest.Test(t, func(t *testing.T) {
			m := statetest.NewModel(t, stateprovider.OpenAI, statetest.Say("This does not arrive whole.").Cut(2).Times(-1))
			_, stream := s.open(t, "https://model.test", &http.Client{Transport: &wire.Transport{Base: m}})
			st := state.New(nil)
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Hello?")}))
			require.Error(t, stream(state.NewContext(t.Context(), st), "", never))
			require.Zero(t, st.History().Len())
		})
	})
}

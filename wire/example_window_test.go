package wire_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// A chat of 300 turns with a model that reads 8 000 tokens, a tool, and a state
// that is described and changes with each turn.
func Example_window() {
	provider := &meter{limit: 8000}
	transport := &wire.Transport{
		Base:    provider,
		Cache:   true,
		Window:  &transcript.Window{Target: 7000},
		Context: wire.Fields,
	}
	st := state.New(state.MustSchema(turnsField))
	fmt.Println(chat(transport, st, 300))

	fmt.Println(provider.requests, "requests,", provider.over, "over the limit,", provider.refused, "refused")
	fmt.Println("at least 95 % begin like the request before:", 100*provider.shared >= 95*provider.possible)
	fmt.Println(state.ListLen(st, state.Messages), "messages in the conversation")
	// Output:
	// <nil>
	// 330 requests, 0 over the limit, 0 refused
	// at least 95 % begin like the request before: true
	// 660 messages in the conversation
}

// A summary is made by the same model, of what it was shown: its request begins
// like the one before, and costs little.
func Example_summary() {
	provider := &meter{limit: 8000}
	client := &http.Client{}
	summarize := func(ctx context.Context, p transcript.Past) (string, error) {
		aside := state.New(nil) // the conversation, and an instruction behind it
		instruction := state.UserText("Say in 200 words what was said and decided. Call no tools.")
		if err := state.Messages.Set(aside, append(p.Shown(), instruction)); err != nil {
			return "", err
		}
		if err := send(state.NewContext(ctx, aside), client, "http://model", chatBody); err != nil {
			return "", err
		}
		result, _ := aside.History().Last()
		text, _ := result.Output[0].(state.TextMessage) // a call is no summary
		return text.Text(), nil
	}
	transport := &wire.Transport{
		Base: provider, Context: describe,
		Window: &transcript.Window{Target: 7000, Keep: 3000, Summarize: summarize},
	}
	client.Transport = transport
	st := state.New(state.MustSchema(turnsField))
	fmt.Println(chat(transport, st, 300))

	fmt.Println(provider.over, "over the limit,", provider.refused, "refused")
	fmt.Println("at least 95 % begin like the request before:", 100*provider.shared >= 95*provider.possible)
	result, _ := st.History().Last()
	fmt.Printf("%.63q\n", result.History[0].(state.TextMessage).Text())
	// Output:
	// <nil>
	// 0 over the limit, 0 refused
	// at least 95 % begin like the request before: true
	// "<summary>\nThis is a summary of the conversation so far, which i"
}

package state_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/agentstate/state"
)

func ExampleState_As() {
	order := &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	draft := &state.Field[string]{Name: "draft", Owner: "support"} // Private
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "general"}}, order, card, draft))
	if err := st.Patch(map[string]any{"order": "#1", "card": "4242", "draft": "Dear Ada"}); err != nil {
		fmt.Println(err)
	}
	for _, agent := range []string{"support", "billing", "general"} {
		fmt.Println(agent, st.As(agent).KV().Keys())
	}
	err := order.Set(st.As("general"), "#2")
	fmt.Println(err)
	var denied *state.AccessError
	fmt.Println(errors.As(err, &denied), denied.Agent, denied.Op, denied.Field)

	// A handle can be narrowed, never widened.
	fmt.Println(st.As("billing").As("general").As("billing").KV().Keys())
	// Output:
	// support [draft order]
	// billing [card order]
	// general [order]
	// state: set "order": access denied to agent "general"
	// true general set order
	// [order]
}

func ExampleNewContext() {
	visits := &state.Field[int]{Name: "visits", Read: state.Public, Write: state.Public}
	st := state.New(state.MustSchema(state.Team{"support": nil}, visits))

	// A tool deep down finds the handle of the agent that called it.
	tool := func(ctx context.Context) error {
		me, ok := state.FromContext(ctx)
		if !ok {
			return errors.New("no state")
		}
		return visits.Update(me, func(n int) (int, error) { return n + 1, nil })
	}
	ctx := state.NewContext(context.Background(), st.As("support"))
	fmt.Println(tool(ctx), tool(ctx), tool(context.Background()), visits.Or(st, 0))
	// Output:
	// <nil> <nil> no state 2
}

func ExampleState_Redact() {
	key := &state.Field[string]{Name: "api_key", Secret: true}
	st := state.New(state.MustSchema(key))
	fmt.Println(key.Set(st, "sk/82 Kd0+xyz"))
	fmt.Println(st.Redact("key sk/82 Kd0+xyz, in a URL sk%2F82+Kd0%2Bxyz"))
	fmt.Println(st.KV().All(), st)
	fmt.Println(st.KV().Set("api_key", state.Masked{}))
	// Output:
	// <nil>
	// key [SECRET], in a URL [SECRET]
	// map[api_key:[SECRET]] state: version 1, 1 set, 0 results
	// state: "api_key": $: want a value that can be stored, got a state.Masked
}

// Fields lists what a handle may read, and what it may write.
func ExampleState_Fields() {
	order := &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	notes := &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	st := state.New(state.MustSchema(state.Team{"support": {"billing", "general"}}, order, notes, card))
	for _, agent := range []string{"support", "billing", "general", "stranger"} {
		var rights []string
		for _, f := range st.As(agent).Fields() {
			if f.Writable {
				rights = append(rights, f.Name+" rw")
			} else {
				rights = append(rights, f.Name+" r")
			}
		}
		fmt.Printf("%-8s %s\n", agent, strings.Join(rights, ", "))
	}
	// Output:
	// support  messages rw, order rw, notes rw
	// billing  messages rw, order r, notes rw, card r
	// general  messages rw, order r, notes rw
	// stranger
}

// A refusal names the agent, the operation and the field. It is also an
// fs.ErrPermission.
func ExampleAccessError() {
	card := &state.Field[string]{Name: "card", Read: state.Only("billing")}
	st := state.New(state.MustSchema(state.Team{"billing": {"general"}}, card))
	_, err := card.Get(st.As("general"))
	var denied *state.AccessError
	fmt.Println(err)
	fmt.Println(errors.As(err, &denied), denied.Agent, denied.Op, denied.Field)
	fmt.Println(errors.Is(err, state.ErrDenied), errors.Is(err, fs.ErrPermission))
	// Output:
	// state: read "card": access denied to agent "general"
	// true general read card
	// true true
}

// Everything that is printed, logged or listed holds the mask of a secret. An
// error of a validation is replaced, because it may quote the value.
func ExampleState_LogValue() {
	host := &state.Field[string]{Name: "host"}
	key := &state.Field[string]{Name: "api_key", Secret: true, Validate: func(key string) error {
		if len(key) < 12 {
			return errors.New("too short: " + key)
		}
		return nil
	}}
	st := state.New(state.MustSchema(host, key))
	fmt.Println(host.Set(st, "api.example.com"), key.Set(st, "sk_82Kd0xyz99"))
	fmt.Println(key.Set(st, "sk_short"))
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger.Info("step", "state", st, "all", st.KV().All())
	// Output:
	// <nil> <nil>
	// state: "api_key": validation refused the value
	// level=INFO msg=step state.agent="" state.version=2 state.set=2 state.results=0 all="map[api_key:[SECRET] host:api.example.com]"
}

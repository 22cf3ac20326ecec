package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func refund(ctx context.Context, in struct{ Order string }) (string, error) {
	call, _ := tool.CallOf(ctx) // whose key tells a bank that it has seen the call
	return "order " + in.Order + " is refunded with the key " + call.Key, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sdk := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: &wire.Transport{}}))
	request := openai.ChatCompletionNewParams{Model: "gpt-5.4-mini"}
	request.Messages = append(request.Messages, openai.SystemMessage("You are a support desk."))
	desk := loop.Agent{Ask: func(ctx context.Context, _ *loop.Turn) error {
		answer := sdk.Chat.Completions.NewStreaming(ctx, request)
		for answer.Next() {
		}
		return answer.Err()
	}}
	pay, err := tool.New("refund", "Refund an order.", refund, tool.DecidedBy("employee"))
	check(err)
	desk.Tools = append(desk.Tools, pay)
	db, err := sqlitestore.Open(ctx, os.Getenv("DB"), nil)
	check(err)
	m, err := workspace.Open(context.Background(), db, &workspace.Options{
		Schema: state.MustSchema(state.Team{"ai": {"customer", "employee"}}),
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"ai": desk}}),
	})
	check(err)
	var people map[string]statehttp.Who // {"Bearer TOKEN": {"User": "ann", "Agent": "customer"}}
	check(json.Unmarshal([]byte(os.Getenv("PEOPLE")), &people))
	who := func(r *http.Request, _ string) (statehttp.Who, error) {
		w := people[r.Header.Get("Authorization")]
		w.User = cmp.Or(w.User, r.URL.Query().Get("user")) // employees see the threads of all
		return w, nil
	}
	check(statehttp.ListenAndServe(ctx, os.Getenv("ADDR"), m, &statehttp.Options{Who: who}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

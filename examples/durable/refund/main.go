// Refund is a durable agent in the fewest lines: the program of the README. The model
// wants to refund 120 euros, and a person approves that from another process, with
// the key that the first one prints. Press Ctrl-C while the money is sent, and repeat
// the command: the same call goes on, with the same key.
//
//	go run ./refund
//	go run ./refund KEY
//
// Its file is refund.db. The model is scripted: see model.go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

func main() {
	ctx := context.Background()
	db, err := sqlitestore.Open(ctx, "refund.db", nil)
	check(err)
	refund := tool.Must(tool.New("refund", "Refund an order.", send, tool.NeedsApproval(much)))
	desk := loop.Agent{Ask: ask, Tools: []*tool.Tool{refund}}
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": desk}}),
		TTL: 2 * time.Second, // when a process dies, another takes over after 3 to 5 seconds
	})
	check(err)
	_, err = m.Submit(ctx, "ann", message()) // is handled once, whoever is killed
	check(err)
	out, err := m.Await(ctx, "ann", message().ID) // in this process or another one
	check(err)
	fmt.Println(out.Reply)
	check(waiting(ctx, m))
}

// send stands for a bank that sends money once for each key.
func send(ctx context.Context, in order) (string, error) {
	call, _ := tool.CallOf(ctx)
	fmt.Printf("sending %v euros with the key %s …\n", in.Amount, call.Key)
	time.Sleep(3 * time.Second)
	return "refunded", nil
}

// message asks for a refund, or approves the call with a key.
func message() workspace.Message {
	if len(os.Args) > 1 {
		return workspace.Message{ID: "2", Decisions: []tool.Decision{tool.Approve(os.Args[1])}}
	}
	return workspace.Message{ID: "1", Content: state.UserText("My order W1 is broken. I want my 120 euros back.")}
}

func much(_ context.Context, in order) (reason string, needed bool) {
	return fmt.Sprintf("%v euros are much", in.Amount), in.Amount > 100
}

type order struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
}

// waiting prints the calls that wait for a person.
func waiting(ctx context.Context, m *workspace.Manager) error {
	v, err := m.View(ctx, "ann")
	if err != nil {
		return err
	}
	for _, call := range v.Suspended() {
		fmt.Printf("%s. Approve it: go -C examples/durable run ./refund %s\n", call.Reason, call.Key)
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

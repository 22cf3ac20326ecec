package workspace_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// chats returns a Manager whose agent repeats what it was told, and whose titles
// are the first message of a conversation.
func chats(ctx context.Context) *workspace.Manager {
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Title: func(st *state.State) string {
			if said := state.Messages.GetOr(st, nil); len(said) > 0 {
				return said[0].Text()
			}
			return ""
		},
		Run: func(_ context.Context, run *workspace.Run) error {
			answer := state.AssistantText("You said: " + run.Message().Content.Text())
			return state.Messages.Set(run.State(), []state.Message{answer})
		},
	})
	if err != nil {
		panic(err)
	}
	return m
}

func send(ctx context.Context, m *workspace.Manager, id, text string) {
	if _, err := m.Handle(ctx, id, workspace.Message{Content: state.UserText(text)}); err != nil {
		panic(err)
	}
}

func printThread(ctx context.Context, m *workspace.Manager, id string) {
	view, err := m.View(ctx, id)
	if err != nil {
		panic(err)
	}
	for _, said := range state.Messages.GetOr(view.State(), nil) {
		fmt.Printf("%s: %s\n", said.Role(), said.Text())
	}
}

// A thread without an id gets one when its first message comes.
func ExampleNewThread() {
	ctx := context.Background()
	m := chats(ctx)
	chat := func(userID, threadID, text string) string {
		id := workspace.Thread(userID, threadID)
		if threadID == "" { // the client has none yet
			id = workspace.NewThread(userID)
		}
		send(ctx, m, id, text)
		_, threadID = workspace.SplitThread(id)
		return threadID
	}
	first := chat("ann", "", "Where is my order?")
	chat("ann", "", "I want a refund.")
	fmt.Println(first == chat("ann", first, "It is W1."))
	for thread, err := range m.Threads(ctx, "ann", "") {
		fmt.Println(thread.Title, thread.Version, err)
	}
	// Output:
	// true
	// I want a refund. 1 <nil>
	// Where is my order? 2 <nil>
}

// What a client has said, and what models have answered, is added to a thread and
// read from it.
func ExampleThread() {
	ctx := context.Background()
	m := chats(ctx)
	id := workspace.Thread("ann", "order W1")
	err := m.Update(ctx, id, func(w *workspace.Workspace) error {
		return errors.Join(
			state.Messages.Set(w.State(), []state.Message{state.UserText("Where is it?")}),
			w.State().History().Append(state.InferenceResult{
				Agent: "desk", Output: []state.Message{state.AssistantText("It arrives on Monday.")},
			}),
		)
	})
	if err != nil {
		panic(err)
	}
	send(ctx, m, id, "Thanks.")
	printThread(ctx, m, id)
	view, err := m.View(ctx, id)
	fmt.Println(view.State().History().Len(), "answer in the history", err)
	// Output:
	// user: Where is it?
	// assistant: It arrives on Monday.
	// user: Thanks.
	// assistant: You said: Thanks.
	// 1 answer in the history <nil>
}

// A client that keeps the conversation itself sends all of it: what is stored gives
// way.
func ExampleManager_Update_clientAuthoritative() {
	ctx := context.Background()
	m := chats(ctx)
	id := workspace.Thread("ann", "1")
	send(ctx, m, id, "This is only on the server.")
	sent := []state.Message{state.UserText("Hello!"), state.AssistantText("Hello, Ann.")}
	err := m.Update(ctx, id, func(w *workspace.Workspace) error { return state.Messages.Replace(w.State(), sent) })
	if err != nil {
		panic(err)
	}
	send(ctx, m, id, "How are you?")
	printThread(ctx, m, id)
	// Output:
	// user: Hello!
	// assistant: Hello, Ann.
	// user: How are you?
	// assistant: You said: How are you?
}

// A user edits a message: the thread goes on from there under another id, and the
// old one stays.
func ExampleManager_Fork() {
	ctx := context.Background()
	m := chats(ctx)
	id, edited := workspace.Thread("ann", "1"), workspace.Thread("ann", "2")
	send(ctx, m, id, "Hello!")
	send(ctx, m, id, "Where is order W1?")
	view, err := m.View(ctx, id)
	if err != nil {
		panic(err)
	}
	var asked int // the number of the message that is edited
	for said := range view.Messages(0, -1) {
		if said.Message.Text() == "Where is order W1?" {
			asked = said.Number
		}
	}
	if err := m.Fork(ctx, id, edited, workspace.ForkPoint{Message: asked}); err != nil {
		panic(err)
	}
	send(ctx, m, edited, "Where is order W2?")
	printThread(ctx, m, edited)
	// Output:
	// user: Hello!
	// assistant: You said: Hello!
	// user: Where is order W2?
	// assistant: You said: Where is order W2?
}

func ExampleManager_DeleteUser() {
	ctx := context.Background()
	m := chats(ctx)
	for _, id := range []string{workspace.Thread("ann", ""), workspace.NewThread("ann"), workspace.NewThread("bob")} {
		send(ctx, m, id, "Hello!")
	}
	fmt.Println(m.DeleteUser(ctx, "ann"))
	for user, err := range m.List(ctx) {
		fmt.Println(user, err)
	}
	_, err := m.Handle(ctx, workspace.NewThread("ann"), workspace.Message{Content: state.UserText("Am I there?")})
	fmt.Println(errors.Is(err, workspace.ErrUserDeleted))
	// Output:
	// <nil>
	// bob <nil>
	// true
}

// A list of chats stays true while the threads change.
func ExampleManager_Watch_threads() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := chats(ctx)
	titles := map[string]string{}
	for e, err := range m.Watch(ctx, workspace.Shared("ann")).AsHost() {
		if err != nil {
			panic(err)
		}
		if e.UserID == workspace.Shared("ann") {
			if e.Order == 1 { // from now on, what changes is told
				for thread, err := range m.Threads(ctx, "ann", "") {
					if err != nil {
						panic(err)
					}
					titles[thread.UserID] = thread.Title
				}
				send(ctx, m, workspace.NewThread("ann"), "Where is my order?")
			}
			continue
		}
		if titles[e.UserID] = e.Title; e.Title != "" {
			fmt.Println(e.Title)
			break
		}
	}
	// Output:
	// Where is my order?
}

package workspace_test

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

type fleet []*workspace.Manager // one for each store, always in the same order

// of returns the Manager of a workspace: those of a user have the same.
func (f fleet) of(id string) *workspace.Manager {
	user, _ := workspace.SplitThread(id)
	h := fnv.New64a()
	h.Write([]byte(user))
	return f[jump(h.Sum64(), len(f))]
}

// jump is the consistent hash of Lamping and Veach: with one more store, only the
// users that move to it have another one than before.
func jump(key uint64, stores int) int {
	at, next := int64(-1), int64(0)
	for next < int64(stores) {
		at = next
		key = key*2862933555777941757 + 1
		next = int64(float64(at+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int(at)
}

// More users than one primary server holds are spread over several stores.
func Example_severalStores() {
	ctx := context.Background()
	var all fleet
	for range 3 {
		m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }})
		if err != nil {
			panic(err)
		}
		defer m.Close()
		all = append(all, m)
	}
	moved := 0
	for i := range 1000 {
		user := fmt.Sprint("user", i)
		if _, err := all.of(user).Handle(ctx, user, workspace.Message{Content: state.UserText("Hello!")}); err != nil {
			panic(err)
		}
		if all.of(user) != append(all, nil).of(user) {
			moved++
		}
	}
	for _, m := range all {
		n := 0
		for range m.List(ctx) {
			n++
		}
		fmt.Println(n, "users")
	}
	fmt.Println(moved, "would move to a fourth store")
	// Output:
	// 314 users
	// 331 users
	// 355 users
	// 240 would move to a fourth store
}

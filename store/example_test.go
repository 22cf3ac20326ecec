package store_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/agentstate/state/store"
)

// Concurrent visits are all counted. With a store on disk or on a server, they can
// come from several processes.
func Example() {
	ctx := context.Background()
	state := store.NewManager(store.NewMemory(), "user:7/")
	visit := func() {
		_, err := state.Update(ctx, "visits", func(value string, _ bool) (string, error) {
			n, _ := strconv.Atoi(value) // 0 on the first visit
			return strconv.Itoa(n + 1), nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(visit)
	}
	wg.Wait()

	fmt.Println(state.Get(ctx, "visits"))
	fmt.Println(state.Get(ctx, "name"))
	// Output:
	// 16 true <nil>
	//  false <nil>
}

func ExampleManager_Update() {
	ctx := context.Background()
	accounts := store.NewManager(store.NewMemory(), "account:")
	errShort := errors.New("not enough money")
	withdraw := func(amount int) (string, error) {
		return accounts.Update(ctx, "ann", func(value string, present bool) (string, error) {
			balance, err := 100, error(nil)
			if present {
				balance, err = strconv.Atoi(value)
			}
			if err == nil && balance < amount {
				err = errShort // nothing is written
			}
			return strconv.Itoa(balance - amount), err
		})
	}
	fmt.Println(withdraw(70))
	fmt.Println(withdraw(70))
	fmt.Println(accounts.Get(ctx, "ann"))
	// Output:
	// 30 <nil>
	//  not enough money
	// 30 true <nil>
}

func ExampleManager_SetJSON() {
	type profile struct {
		Name string `json:"name"`
		Tags []string
	}
	ctx := context.Background()
	users := store.NewManager(store.NewMemory(), "user:")
	err := users.SetJSON(ctx, "7", profile{Name: "Ann <ann@example.com>", Tags: []string{"new"}})
	var p profile
	found, err2 := users.GetJSON(ctx, "7", &p)
	fmt.Println(p, found, errors.Join(err, err2))
	fmt.Println(users.Get(ctx, "7"))
	// Output:
	// {Ann <ann@example.com> [new]} true <nil>
	// {"name":"Ann <ann@example.com>","Tags":["new"]} true <nil>
}

// A write that names the revision that it replaces does not overwrite a change that
// its writer has not read.
func ExampleNewMemory() {
	ctx := context.Background()
	s := store.NewMemory()
	draft, err := store.Put(ctx, s, "page", []byte("draft"), store.IfAbsent)
	fmt.Println(err)
	_, err = store.Put(ctx, s, "page", []byte("final"), store.IfRevision(draft))
	fmt.Println(err)
	_, err = store.Put(ctx, s, "page", []byte("late"), store.IfRevision(draft))
	fmt.Println(err, errors.Is(err, store.ErrConflict))
	for e, err := range s.List(ctx, "", "", true) {
		fmt.Printf("%s=%s %v\n", e.Key, e.Value, err)
	}
	// Output:
	// <nil>
	// <nil>
	// store: memory: write "page": store: conflict true
	// page=final <nil>
}

// A program that knows the keys reads them in one call.
func ExampleStore_get() {
	ctx := context.Background()
	var db store.Store = store.NewMemory() // or any other
	for _, name := range []string{"ann", "bob"} {
		_, _ = store.Put(ctx, db, "user/"+name, []byte("Hello, "+name), store.Always)
	}
	entries, err := db.Get(ctx, "user/bob", "user/eve", "user/ann")
	for _, e := range entries {
		fmt.Printf("%s: %q, exists: %v\n", e.Key, e.Value, e.Revision != "")
	}
	fmt.Println(err)
	// Output:
	// user/bob: "Hello, bob", exists: true
	// user/eve: "", exists: false
	// user/ann: "Hello, ann", exists: true
	// <nil>
}

func ExampleMemory_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := store.NewMemory()
	events := s.Watch(ctx, "job:")
	manager := store.NewManager(s, "job:")
	_ = manager.Set(ctx, "1", "running")
	_ = manager.Set(ctx, "1", "done")
	for e, err := range events {
		fmt.Printf("%s %s %v\n", e.Key, e.Value, err)
		cancel() // ends the watch
	}
	// Output:
	// job:1 done <nil>
}

// Stores counts the visits of a user and keeps a list of notes, twice over: what
// the first session left behind, the second finds, if the store is a durable one.
// Without arguments it does so in memory and in a SQLite file, with an argument
// wherever that says:
//
//	go run . desk.db
//	go run . postgres://postgres@127.0.0.1/test
//	go run . mysql://root@127.0.0.1/test
//	go run . redis://127.0.0.1
//	go run . nats://127.0.0.1
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/natsstore"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlstore"
)

func main() {
	ctx := context.Background()
	if len(os.Args) == 1 {
		embedded(ctx)
	}
	for _, address := range os.Args[1:] {
		run(ctx, address)
	}
}

// embedded is what needs no server.
func embedded(ctx context.Context) {
	dir, err := os.MkdirTemp("", "stores")
	check(err)
	run(ctx, "memory")
	run(ctx, filepath.Join(dir, "desk.db"))
	check(os.RemoveAll(dir))
}

// open takes a URL, the name of a SQLite file, or "memory".
func open(ctx context.Context, address string) (store.Store, error) {
	scheme, _, _ := strings.Cut(address, ":")
	switch scheme {
	case "memory":
		return store.NewMemory(), nil
	case "postgres", "mysql":
		return sqlstore.Open(ctx, scheme, address, nil)
	case "redis":
		return redisstore.Open(ctx, address, nil)
	case "nats":
		return natsstore.Open(ctx, address, nil)
	}
	return sqlstore.Open(ctx, "sqlite", address, nil)
}

func run(ctx context.Context, address string) {
	for session := range 2 {
		s, err := open(ctx, address)
		check(err)
		if session == 0 {
			fmt.Printf("%T, durability: %v\n", s, s.Durability())
		}
		desk := store.NewManager(s, "desk/")

		// Ada comes in by eight doors at once. None of her visits is lost.
		var doors sync.WaitGroup
		for range 8 {
			doors.Go(func() { check(visit(ctx, desk, "ada")) })
		}
		doors.Wait()
		check(note(ctx, desk, "ada", fmt.Sprint("note ", session+1)))

		visits, _, err := desk.Get(ctx, "visits/ada")
		check(err)
		var notes []string
		_, err = desk.GetJSON(ctx, "notes/ada", &notes)
		check(err)
		fmt.Printf("  ada: %s visits, notes %q\n", visits, notes)
		check(s.Close())
	}
}

// visit adds one to what is there, whoever else is about to.
func visit(ctx context.Context, desk *store.Manager, user string) error {
	_, err := desk.Update(ctx, "visits/"+user, func(value string, present bool) (string, error) {
		if !present {
			return "1", nil
		}
		visits, err := strconv.Atoi(value)
		return strconv.Itoa(visits + 1), err
	})
	return err
}

func note(ctx context.Context, desk *store.Manager, user, text string) error {
	_, err := desk.Update(ctx, "notes/"+user, func(value string, present bool) (string, error) {
		var notes []string
		if present {
			if err := json.Unmarshal([]byte(value), &notes); err != nil {
				return "", err
			}
		}
		data, err := json.Marshal(append(notes, text))
		return string(data), err
	})
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

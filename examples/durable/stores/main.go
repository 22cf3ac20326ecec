// Stores counts the visits of a user and keeps a list of notes, in two
// sessions. The second session finds what the first one stored, if the store is
// durable. Without arguments, it uses memory and a SQLite file. An argument
// names another store:
//
//	go run . desk.db
//	go run . postgres://postgres@127.0.0.1/test
//	go run . mysql://root@127.0.0.1/test
//	go run . redis://127.0.0.1
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
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
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

// embedded runs the sessions on the stores that need no server.
func embedded(ctx context.Context) {
	dir, err := os.MkdirTemp("", "stores")
	check(err)
	run(ctx, "memory")
	run(ctx, filepath.Join(dir, "desk.db"))
	check(os.RemoveAll(dir))
}

// open opens the store at an address, which is a URL, the name of a SQLite
// file, or "memory".
func open(ctx context.Context, address string) (store.Store, error) {
	scheme, _, _ := strings.Cut(address, ":")
	switch scheme {
	case "memory":
		return store.NewMemory(), nil
	case "postgres":
		return postgresstore.Open(ctx, address, nil)
	case "mysql":
		return mysqlstore.Open(ctx, address, nil)
	case "redis":
		return redisstore.Open(ctx, address, nil)
	}
	return sqlitestore.Open(ctx, address, nil)
}

func run(ctx context.Context, address string) {
	for session := range 2 {
		s, err := open(ctx, address)
		check(err)
		if session == 0 {
			fmt.Printf("%T, durability: %v\n", s, s.Durability())
		}
		desk := store.NewManager(s, "desk/")

		// Eight visits at the same time are eight visits.
		var visitors sync.WaitGroup
		for range 8 {
			visitors.Go(func() { check(visit(ctx, desk, "ada")) })
		}
		visitors.Wait()
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

// visit adds one visit. Concurrent visits, by this or other processes, are not
// lost.
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

// Desk is a support desk in a terminal, for several users at once. All that it
// knows is in a SQLite file: kill it whenever you like, start it again, and it goes on
// where it was.
//
//	go run . -db desk.db
//	alice: where is my order #W1?
//	bob: remember my token is tok-4711-abc
//	alice: refund it
//	!alice: stop
//	/queue alice
//
// What a user says while an answer is under way waits; with an exclamation mark it
// interrupts. The other commands are /memory USER, /reset USER and /quit, which leaves
// everything as a kill would. At the end of the input the desk answers what waits.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/workspace"
)

func main() {
	file := flag.String("db", "desk.db", "the SQLite `file`")
	slow := flag.Duration("slow", 300*time.Millisecond, "how long a refund takes")
	ttl := flag.Duration("ttl", 2*time.Second, "how long a process may be silent")
	session := flag.String("session", time.Now().Format(time.RFC3339Nano), "the `name` of the input: lines are not taken twice under one name")
	flag.Parse()

	ctx := context.Background()
	db, err := sqlstore.Open(ctx, "sqlite", *file, nil)
	check(err)
	check(store.NewManager(db, "").SetJSON(ctx, "schema", schema)) // for examples/inspect
	d := &desk{shop: &shop{store.NewManager(db, "shop:"), *slow}}
	d.m, err = workspace.Open(ctx, db, &workspace.Options{
		Schema: schema, Run: d.answer, TTL: *ttl,
		Hooks: workspace.Hooks{OnRunStart: d.started, OnRunComplete: d.completed},
	})
	check(err)
	var recovery sync.WaitGroup
	recovery.Go(func() { complain(d.m.Recover(ctx)) })
	if d.read(ctx, bufio.NewScanner(os.Stdin), *session) {
		recovery.Wait()
		check(d.m.Wait(ctx))
	}
	check(d.m.Close())
	recovery.Wait()
	check(db.Close())
}

// desk is the program.
type desk struct {
	m    *workspace.Manager
	shop *shop
}

// read takes lines until there are no more, and returns false if it is to quit.
func (d *desk) read(ctx context.Context, lines *bufio.Scanner, session string) bool {
	for n := 1; lines.Scan(); n++ {
		user, text, ok := strings.Cut(lines.Text(), ": ")
		switch command, of, _ := strings.Cut(lines.Text(), " "); {
		case command == "/quit":
			return false
		case strings.HasPrefix(command, "/"):
			complain(d.command(ctx, command, of))
		case ok:
			msg := workspace.Message{ID: fmt.Sprint(session, "/", n), Content: state.UserText(text)}
			if strings.HasPrefix(user, "!") {
				user, msg.Busy = user[1:], workspace.BusyInterrupt
			}
			out, err := d.m.Submit(ctx, user, msg)
			complain(err)
			if err == nil && out.Status != workspace.StatusStarted {
				say(user, "[%s]", out.Status)
			}
		default:
			log.Print("desk: want USER: TEXT, or a command")
		}
	}
	check(lines.Err())
	return true
}

// answer has the message of a run answered.
func (d *desk) answer(ctx context.Context, run *workspace.Run) error {
	err := d.shop.answer(ctx, run)
	if errors.Is(context.Cause(ctx), workspace.ErrInterrupted) {
		say(run.UserID(), "[interrupted]")
	}
	return err
}

// started is told of every run, also of those that other processes have begun.
func (d *desk) started(_ context.Context, run *workspace.Run) {
	if run.Attempt() > 0 {
		say(run.UserID(), "[goes on after a crash]")
	}
}

// completed prints the answer, which is stored by now.
func (d *desk) completed(_ context.Context, run *workspace.Run, err error) {
	if err != nil {
		say(run.UserID(), "[failed: %s]", run.Redact(err.Error()))
		return
	}
	for _, m := range state.Items(run.State(), state.Messages, -1) {
		say(run.UserID(), "%s", run.Redact(text(m)))
	}
}

func (d *desk) command(ctx context.Context, command, user string) error {
	if command == "/reset" {
		dropped, err := d.m.Reset(ctx, user)
		say(user, "[messages that were not handled: %d]", len(dropped))
		return err
	}
	v, err := d.m.View(ctx, user)
	if err != nil {
		return err
	}
	switch command {
	case "/memory":
		for key, entry := range v.Memory().All() {
			say(user, "[remembers %s: %v]", key, entry) // which masks itself
		}
	case "/queue":
		if v.Run != nil {
			say(user, "[is answered: %s]", v.Redact(text(v.Run.Message.Content)))
		}
		for _, msg := range v.Queue {
			say(user, "[waits: %s]", v.Redact(text(msg.Content)))
		}
	default:
		return errors.New("desk: no such command")
	}
	return nil
}

// say prints a line. Those of several users come as they come.
func say(user, format string, args ...any) {
	fmt.Printf("%s: %s\n", user, fmt.Sprintf(format, args...))
}

func text(m state.Message) string {
	t, _ := m.(state.TextMessage)
	return t.Text()
}

func complain(err error) {
	if err != nil && !errors.Is(err, workspace.ErrClosed) {
		log.Print(err)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

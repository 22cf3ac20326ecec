// Desk is a support desk in a terminal, for several users at once. All of its
// state is in a SQLite file. You can kill it at any moment and start it again;
// it continues where it was.
//
//	go run . -db desk.db
//	alice: where is my order #W1?
//	bob: remember my token is tok-4711-abc
//	alice: refund it
//	!alice: stop
//	/queue alice
//
// A message that arrives during a run waits in the queue. A message with an
// exclamation mark interrupts the run. The other commands are /memory USER,
// /reset USER and /quit, which leaves all messages to the next start. At the end
// of the input, the desk answers the waiting messages and ends.
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
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

func main() {
	file := flag.String("db", "desk.db", "the SQLite `file`")
	slow := flag.Duration("slow", 300*time.Millisecond, "how long a refund takes")
	ttl := flag.Duration("ttl", 2*time.Second, "how long a lease lasts that is not renewed")
	session := flag.String("session", time.Now().Format(time.RFC3339Nano), "the `name` of the input; a line is handled once for each name")
	flag.Parse()

	ctx := context.Background()
	db, err := sqlitestore.Open(ctx, *file, nil)
	check(err)
	check(workspace.PublishSchema(ctx, db, schema)) // for stateinspect
	d := &desk{shop: &shop{store.NewManager(db, "shop:"), *slow}}
	d.m, err = workspace.Open(ctx, db, &workspace.Options{
		Schema: schema, Run: d.answer, TTL: *ttl,
		Hooks: workspace.Hooks{OnRunStart: d.started, OnRunComplete: d.completed},
	})
	check(err)
	if d.read(ctx, bufio.NewScanner(os.Stdin), *session) {
		d.finish(ctx)
	}
	check(d.m.Close())
	check(db.Close())
}

// finish waits until nobody's message is left, also of those that another process
// has left.
func (d *desk) finish(ctx context.Context) {
	for running := true; running; {
		running = false
		for s, err := range d.m.Active(ctx) {
			check(err)
			running = running || s.Run != nil
		}
		check(d.m.Wait(ctx))
		time.Sleep(50 * time.Millisecond)
	}
}

// desk is the program.
type desk struct {
	m    *workspace.Manager
	shop *shop
}

// read submits lines until the input ends. It returns false for /quit.
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
				user, msg.WhenBusy = user[1:], workspace.BusyInterrupt
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

// answer handles the message of a run.
func (d *desk) answer(ctx context.Context, run *workspace.Run) error {
	err := d.shop.answer(ctx, run)
	if errors.Is(context.Cause(ctx), workspace.ErrInterrupted) {
		say(run.UserID(), "[interrupted]")
	}
	return err
}

// started is called for each run, including those that this process takes over.
func (d *desk) started(_ context.Context, run *workspace.Run) {
	if run.Attempt() > 0 {
		say(run.UserID(), "[continues after a crash]")
	}
}

// completed prints the answer. It is stored before completed is called.
func (d *desk) completed(_ context.Context, run *workspace.Run, err error) {
	if err != nil {
		say(run.UserID(), "[failed: %s]", run.Redact(err.Error()))
		return
	}
	say(run.UserID(), "%s", run.Redact(run.Reply()))
}

func (d *desk) command(ctx context.Context, command, user string) error {
	if command == "/reset" {
		dropped, err := d.m.Reset(ctx, user)
		say(user, "[dropped messages: %d]", len(dropped))
		return err
	}
	v, err := d.m.View(ctx, user)
	if err != nil {
		return err
	}
	switch command {
	case "/memory":
		for key, entry := range v.Memory().All() {
			say(user, "[remembers %s: %v]", key, entry) // a secret entry prints its mask
		}
	case "/queue":
		if v.Run != nil {
			say(user, "[running: %s]", v.Redact(text(v.Run.Message.Content)))
		}
		for _, msg := range v.Queue {
			say(user, "[waiting: %s]", v.Redact(text(msg.Content)))
		}
	default:
		return errors.New("desk: no such command")
	}
	return nil
}

// say prints a line. The lines of several users are not ordered.
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

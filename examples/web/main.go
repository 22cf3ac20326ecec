// Web has two pages for people and an agent: a customer chats with a support desk, and
// an employee, at /staff/, decides about refunds. Beside the chat is its state, live,
// of which each of them sees and edits what the schema lets them.
//
//	go -C examples/web run .
//
// Everything is in a SQLite file. Stop the program in the middle of an answer,
// start it again, and the answer is asked for again; reload the page, or open it twice, and
// nothing is gone. The model is that of OpenAI if OPENAI_API_KEY is set, or that
// of a server with the same API if OPENAI_BASE_URL is set as well. Otherwise it
// is scripted.
//
// With -agui, pages of AG-UI find the desk at /agent: see docs/agui.md.
//
// To have such a page for agents of your own, copy the folder page, whose file
// follow.js says how changes are followed, and routes.go, which serves it with package
// statehttp. The desk is an example.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the `address` of the page")
	file := flag.String("db", "web.db", "the SQLite `file`")
	agui := flag.Bool("agui", false, "serve pages of AG-UI at /agent, too")
	pace := flag.Duration("pace", 40*time.Millisecond, "the time for a word of the scripted model")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	listener, err := net.Listen("tcp", *addr)
	check(err)
	db, err := sqlitestore.Open(context.Background(), *file, nil)
	check(err)
	desk := &desk{client: &http.Client{Transport: &wire.Transport{}}, pace: *pace}
	desk.url = modelURL(desk.pace)
	opts := desk.options()
	opts.Name = listener.Addr().String()                                  // which goes on at once with what was left there
	check(workspace.PublishSchema(context.Background(), db, opts.Schema)) // for stateinspect
	m, err := workspace.Open(context.Background(), db, opts)
	check(err)

	handler, err := routes(m)
	check(err)
	if *agui {
		mux := http.NewServeMux()
		mux.Handle("/", handler)
		pages, err := aguistate.New(m, &aguistate.Options{Who: func(*http.Request, string) (statehttp.Who, error) {
			return who("customer"), nil
		}})
		check(err)
		mux.Handle("/agent", pages)
		handler = mux
	}
	srv := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: 10 * time.Second}
	go func() { check(srv.Serve(listener)) }()
	fmt.Printf("Open http://%s in a browser, and http://%[1]s/staff/ as an employee.\n", listener.Addr())
	<-ctx.Done() // the streams of events end as well
	stop()       // the next signal ends the process at once
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(errors.Join(m.Shutdown(deadline), srv.Shutdown(deadline), db.Close()))
}

func check(err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// Followers measures what it costs to hold streams of events: those of package
// statehttp, each of a thread of its own with a question and an answer, beside those of a
// bare handler of net/http that sends one event and waits.
//
//	go -C lab run ./followers -n 10000
//
// Each is measured in a process of its own, after a garbage collection: the bytes of the
// heap and of stacks that are in use, by stream. A process needs as many files.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// streamsOfHandler is less than a Handler of statehttp allows.
const streamsOfHandler = 900

func main() {
	n := flag.Int("n", 10_000, "the number of streams")
	serves := flag.String("serve", "", "serve `bare` or `statehttp`, as this program starts itself")
	flag.Parse()
	if *serves != "" {
		check(serve(*serves, *n))
		return
	}
	var bytes [2]int
	for i, kind := range []string{"bare", "statehttp"} {
		var err error
		bytes[i], err = measure(kind, *n)
		check(err)
		fmt.Printf("%s: %d streams, %d bytes each\n", kind, *n, bytes[i] / *n)
	}
	fmt.Printf("statehttp above bare: %d bytes for each stream\n", (bytes[1]-bytes[0]) / *n)
}

// measure returns the bytes that a process uses while it serves streams, above what it
// used before.
func measure(kind string, n int) (bytes int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, "-serve", kind, "-n", fmt.Sprint(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err = cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var addr string
	if _, err = fmt.Fscan(out, &addr); err != nil {
		return 0, err
	}
	before, err := inUse(addr)
	if err != nil {
		return 0, err
	}
	for i := range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		if err = open(conn, i); err != nil {
			return 0, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	after, err := inUse(addr)
	return after - before, err
}

// open asks for a stream, and reads its first event.
func open(conn net.Conn, i int) error {
	_, err := fmt.Fprintf(conn, "GET /%d/threads/1/events HTTP/1.1\r\nHost: localhost\r\nUser: u%d\r\n\r\n", i/streamsOfHandler, i)
	if err != nil {
		return err
	}
	for lines := bufio.NewReaderSize(conn, 16); ; {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "data: ") {
			return err
		}
		if strings.HasPrefix(line, "HTTP/1.1") && !strings.Contains(line, "200") {
			return fmt.Errorf("%s", line)
		}
	}
}

func inUse(addr string) (bytes int, err error) {
	resp, err := http.Get("http://" + addr + "/memory")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = fmt.Fscan(resp.Body, &bytes)
	return bytes, err
}

func serve(kind string, n int) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /memory", func(w http.ResponseWriter, _ *http.Request) {
		for range 8 { // each halves stacks that are not used, and pools are empty after the second
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintln(w, m.HeapAlloc+m.StackInuse)
	})
	if kind == "bare" {
		mux.HandleFunc("/", bare)
	} else if err := threads(mux, n); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, mux)
}

// bare sends an event as large as that of statehttp, and waits.
func bare(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 500)+"\n\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// threads serves a thread for each of n users.
func threads(mux *http.ServeMux, n int) error {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }})
	if err != nil {
		return err
	}
	for i := range n {
		err := m.Update(ctx, workspace.Thread(fmt.Sprint("u", i), "1"), func(w *workspace.Workspace) error {
			return state.Messages.Set(w.State(), []state.Message{state.UserText("Where is my parcel?"), state.AssistantText("It is on its way.")})
		})
		if err != nil {
			return err
		}
	}
	for i := 0; i*streamsOfHandler < n; i++ {
		h, err := statehttp.New(m, &statehttp.Options{Who: func(r *http.Request, _ string) (statehttp.Who, error) {
			return statehttp.Who{User: r.Header.Get("User"), Agent: "ui"}, nil
		}})
		if err != nil {
			return err
		}
		at := fmt.Sprint("/", i)
		mux.Handle(at+"/", http.StripPrefix(at, h))
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

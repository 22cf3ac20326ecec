package processes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// workerVariable holds the task of a process that is a worker, as JSON. The tests
// start their own binary again to have several processes.
const workerVariable = "WORKSPACETEST_WORKER"

func TestMain(m *testing.M) {
	text := os.Getenv(workerVariable)
	if text == "" {
		// Most of the time the tests wait until a process is taken for dead.
		_ = flag.Set("test.parallel", "16")
		os.Exit(m.Run())
	}
	if err := work(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// task is what a worker is to do.
type task struct {
	Job      string
	Address  string
	TTL      time.Duration
	Takeover workspace.Takeover
}

// request is what a worker is told to do.
type request struct {
	ID      int
	Op      string
	User    string `json:",omitempty"`
	Message string `json:",omitempty"`
	Busy    workspace.Busy
	Handle  int `json:",omitempty"` // of a run that the worker holds
}

// reply is what came of a request, or if it has no ID, what happened by itself.
type reply struct {
	ID       int              `json:",omitempty"`
	Event    event            `json:",omitempty"`
	User     string           `json:",omitempty"`
	Message  string           `json:",omitempty"`
	Attempt  int              `json:",omitempty"`
	Token    string           `json:",omitempty"` // what was committed
	Handle   int              `json:",omitempty"`
	Status   workspace.Status `json:",omitempty"`
	Fate     fate             `json:",omitempty"`
	Steps    int              `json:",omitempty"`
	Snapshot string           `json:",omitempty"`
	Problem  string           `json:",omitempty"` // with which the test fails
}

type event string

const (
	began     event = "began"     // a run has begun, or was taken over
	committed event = "committed" // Commit has returned
	completed event = "completed" // the run is finished
	lost      event = "lost"      // the run cannot commit any more
	wrong     event = "wrong"     // Problem says what
)

// fate is what a call has come to.
type fate string

const (
	made    fate = "made"
	busy    fate = "busy"
	full    fate = "full"
	fenced  fate = "fenced"
	silent  fate = "silent" // fenced since it could show no sign of life
	ended   fate = "ended"
	unknown fate = "unknown"
	failed  fate = "failed"
)

func work(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("task of a worker: %w", err)
	}
	jobs := map[string]func(task) error{"serve": serve, "hold": hold, "operate": operate}
	job, ok := jobs[t.Job]
	if !ok {
		return fmt.Errorf("no job %q", t.Job)
	}
	return job(t)
}

// printer writes lines of JSON to standard output, each in one system call, so
// that a kill leaves no half line.
type printer struct{ mu sync.Mutex }

func (p *printer) print(r reply) {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n')) // fails if nobody listens any more
}

// requests calls answer for each request, in a goroutine of its own, until there
// will be no more.
func requests(p *printer, answer func(q request) reply) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		wg.Go(func() {
			r := answer(q)
			r.ID = q.ID
			p.print(r)
		})
	}
	return in.Err()
}

// recovering calls Recover again and again.
func recovering(m *workspace.Manager, ttl time.Duration) {
	for {
		_ = m.Recover(context.Background()) // the next one may have more luck
		time.Sleep(ttl / 2)
	}
}

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	stderr bytes.Buffer
	done   chan struct{} // closed when it has said all that it will

	mu     sync.Mutex
	last   int
	calls  map[int]chan reply
	killed bool
	err    error // set before done is closed
}

// start starts a worker, which is killed when ctx ends. What it says by itself goes
// to tell, one at a time.
func start(ctx context.Context, t task, tell func(*process, reply)) (*process, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), done: make(chan struct{}), calls: map[int]chan reply{}}
	p.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 5 * time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = json.NewEncoder(in)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.receive(bufio.NewScanner(out), tell)
	return p, nil
}

func (p *process) receive(out *bufio.Scanner, tell func(*process, reply)) {
	defer close(p.done)
	for out.Scan() {
		var r reply
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			p.err = fmt.Errorf("a worker printed %.80q", out.Bytes())
			p.kill()
			break
		}
		if r.ID == 0 {
			tell(p, r)
			continue
		}
		p.mu.Lock()
		p.calls[r.ID] <- r
		delete(p.calls, r.ID)
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && !p.killed {
		p.err = fmt.Errorf("a worker ended by itself: %w: %.4000s", err, p.stderr.Bytes())
	}
}

// ask has the worker do something. It is false if the worker was killed before it
// answered.
func (p *process) ask(q request) (reply, bool) {
	c := make(chan reply, 1)
	p.mu.Lock()
	p.last++
	q.ID = p.last
	p.calls[q.ID] = c
	_ = p.in.Encode(q) // fails if it was killed, and then done tells
	p.mu.Unlock()
	select {
	case r := <-c:
		return r, true
	case <-p.done:
	}
	select {
	case r := <-c:
		return r, true
	default:
		return reply{}, false
	}
}

// kill ends the worker as kill -9 does.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// problem says why the worker has ended by itself, if it has.
func (p *process) problem() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// fateOf says what an error means. What is nothing to be expected is failed.
func fateOf(err error) fate {
	for _, known := range []struct {
		err  error
		fate fate
	}{
		{workspace.ErrBusy, busy},
		{workspace.ErrQueueFull, full},
		{workspace.ErrFenced, fenced},
		{store.ErrUnknownOutcome, unknown},
		{context.DeadlineExceeded, unknown}, // of a Finish on a slow machine: the run is taken over
		{workspace.ErrRunEnded, ended},
	} {
		if errors.Is(err, known.err) {
			return known.fate
		}
	}
	if err == nil {
		return made
	}
	return failed
}

// underRace reports whether this was built with the race detector.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// seed returns what STATE_SEED says, or something else each time, and prints it.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("STATE_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STATE_SEED is no number: %v", err)
		}
	}
	t.Logf("STATE_SEED=%d", n)
	return n
}

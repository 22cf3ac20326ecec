package storetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/store"
)

// workerVariable holds the task of a process that is a worker, as JSON.
const workerVariable = "STORETEST_WORKER"

// opener is what Main was given.
var opener func(address string) (store.Store, error)

// Main is what TestMain of a package calls that uses [Processes], [Counter] or
// [Kill]:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m, open)) }
//
// These start the test binary again, several times, and Main is where such a
// process becomes a worker instead of running the tests. It returns the exit code.
// open opens a handle on the data set at an address, in whatever form the package
// gives addresses to these tests. They leave some entries there.
func Main(m *testing.M, open func(address string) (store.Store, error)) int {
	text := os.Getenv(workerVariable)
	if text == "" {
		opener = open
		return m.Run()
	}
	if err := work(text, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// task is what a worker is to do.
type task struct {
	Job     string `json:"job"`
	Address string `json:"address"`
	Prefix  string `json:"prefix"` // of all its keys
	Seed    uint64 `json:"seed"`
}

func work(text string, open func(address string) (store.Store, error)) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("storetest: task of a worker: %w", err)
	}
	jobs := map[string]func(store.Store, task) error{"serve": serve, "count": count, "write": write}
	job, ok := jobs[t.Job]
	if !ok {
		return fmt.Errorf("storetest: no job %q", t.Job)
	}
	s, err := open(t.Address)
	if err != nil {
		return fmt.Errorf("storetest: open: %w", err)
	}
	return errors.Join(job(s, t), s.Close())
}

// printer writes lines of JSON to standard output, each in one system call, so
// that a kill leaves no half line.
type printer struct{ mu sync.Mutex }

func (p *printer) print(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	close  func() error // of its standard input
	out    *bufio.Scanner
	stderr bytes.Buffer
	once   sync.Once
	err    error
}

// start starts a worker, which is killed when ctx ends at the latest. Whoever
// starts it calls stop.
func start(ctx context.Context, t task) (*process, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// If TestMain does not call Main, the process must not run the tests.
	p := &process{cmd: exec.CommandContext(ctx, self, "-test.run=^$")}
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
	p.in, p.close, p.out = json.NewEncoder(in), in.Close, bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// read returns the next line, and false when there will be none.
func (p *process) read(line any) (bool, error) {
	if !p.out.Scan() {
		return false, p.out.Err()
	}
	if err := json.Unmarshal(p.out.Bytes(), line); err != nil {
		return false, fmt.Errorf("a worker printed %.80q: does TestMain call storetest.Main?", p.out.Bytes())
	}
	return true, nil
}

// wait waits for the end of a worker whose output was read to its end, or that
// was killed, and says what went wrong in it.
func (p *process) wait() error {
	p.once.Do(func() {
		if err := p.cmd.Wait(); err != nil {
			p.err = fmt.Errorf("worker: %w: %.4000s", err, p.stderr.Bytes())
		}
	})
	return p.err
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func (p *process) stop() {
	p.kill()
	_ = p.wait()
}

// seed returns what STATE_SEED says, or something else each time, and prints it.
func seed(t *testing.T) uint64 {
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

// open opens a handle in the process of the test.
func open(t *testing.T, address string) store.Store {
	t.Helper()
	if opener == nil {
		t.Fatal("TestMain does not call storetest.Main")
	}
	s, err := opener(address)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// newPrefix returns a prefix of keys that nobody else has.
func newPrefix(name string) string {
	return name + "-" + string(store.NewRevision()[:16]) + "/"
}

// Package worker lets the tests of a package start their own binary again, as
// worker processes. Only tests import it.
//
// TestMain calls [Main]. A process that [Start] has started does its task there
// and runs no test. Workers and the test exchange lines of JSON: a worker
// prints with [Print], and the test reads with [Process.Read]. A worker that
// calls [Serve] answers the requests of a [Client].
package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// variable holds the task of a worker, as JSON. Other processes do not have it.
const variable = "STATE_WORKER"

// Main runs the tests. In a worker it calls do with the task instead. It
// returns the exit code of the process.
func Main[Task any](m *testing.M, do func(Task) error) int {
	text := os.Getenv(variable)
	if text == "" {
		return m.Run()
	}
	var task Task
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = do(task)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A line is what a worker prints, or a request to it.
type line[T any] struct {
	ID   int `json:",omitempty"` // of the request, 0 if a worker prints by itself
	Body T
}

// output keeps the lines of a worker apart.
var output sync.Mutex

// Print writes a line to standard output. It fails if the parent has stopped
// reading.
func Print(body any) error { return printLine(0, body) }

// printLine writes each line in one system call, so that a kill never leaves
// half a line.
func printLine(id int, body any) error {
	text, err := json.Marshal(line[any]{id, body})
	if err != nil {
		return err
	}
	output.Lock()
	defer output.Unlock()
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// Serve calls answer for each request of a [Client], in a separate goroutine,
// and prints what it returns. It returns when the client closes.
func Serve[Request, Reply any](answer func(Request) Reply) error {
	var calls sync.WaitGroup
	defer calls.Wait()
	requests := json.NewDecoder(os.Stdin)
	for {
		var request line[Request]
		if err := requests.Decode(&request); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		calls.Go(func() {
			_ = printLine(request.ID, answer(request.Body)) // the parent may be gone
		})
	}
}

// A Process is a worker as the test that started it sees it.
type Process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	wait   func() error
	killed atomic.Bool
}

// Start starts a worker that is killed when ctx ends, if not earlier. The
// caller must call Wait or Stop.
func Start(ctx context.Context, task any) (*Process, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Without tests to run, a package whose TestMain does not call Main starts
	// no processes without end.
	cmd := exec.CommandContext(ctx, self, "-test.run=^$")
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, input: input, output: bufio.NewScanner(stdout)}
	p.wait = sync.OnceValue(func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("worker: %w: %.4000s", err, stderr.Bytes())
		}
		return nil
	})
	return p, cmd.Start()
}

// Read reads the next line into body, a pointer. It returns false when the
// worker has closed its output.
func (p *Process) Read(body any) (bool, error) {
	_, ok, err := p.readLine(body)
	return ok, err
}

func (p *Process) readLine(body any) (id int, ok bool, err error) {
	if !p.output.Scan() {
		return 0, false, p.output.Err()
	}
	next := line[any]{Body: body}
	if err := json.Unmarshal(p.output.Bytes(), &next); err != nil {
		return 0, false, fmt.Errorf("a worker printed %.80q: does TestMain call Main?", p.output.Bytes())
	}
	return next.ID, true, nil
}

// Kill ends the worker as kill -9 does.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill()
}

// Signal sends a signal to the worker.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits for the end of a worker that was killed or whose output was read
// to its end, and returns what went wrong in it.
func (p *Process) Wait() error { return p.wait() }

// Exited reports whether the worker ended by itself and not by a signal. It may
// be called after Wait.
func (p *Process) Exited() bool { return p.cmd.ProcessState.Exited() }

// Stop kills the worker, if it still runs, and waits for its end.
func (p *Process) Stop() {
	p.Kill()
	_ = p.Wait()
}

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// A Process is a worker as the test that started it sees it. It sends requests
// to a worker that calls [Serve]. It is safe for concurrent use.
type Process[Request, Reply any] struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	done   chan struct{}
	killed atomic.Bool

	mu     sync.Mutex
	last   int
	calls  map[int]chan Reply
	closed bool
	err    error // set before done is closed
}

// Start starts a worker that is killed when ctx ends, if not earlier. It calls
// hear with each line that the worker prints by itself, one at a time.
func Start[Request, Reply any](
	ctx context.Context, task any, hear func(*Process[Request, Reply], Reply),
) (*Process[Request, Reply], error) {
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
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process[Request, Reply]{cmd: cmd, input: input, done: make(chan struct{}), calls: map[int]chan Reply{}}
	go func() {
		defer close(p.done)
		problem := p.receive(output, hear)
		if problem != nil {
			p.Kill()
		}
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("worker: %w: %.4000s", err, stderr.Bytes())
		}
		p.end(problem, err)
	}()
	return p, nil
}

// receive reads what the worker prints, until it has ended.
func (p *Process[Request, Reply]) receive(output io.Reader, hear func(*Process[Request, Reply], Reply)) error {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var next line[Reply]
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return fmt.Errorf("a worker printed %.80q: does TestMain call Main?", lines.Bytes())
		}
		if next.ID == 0 {
			hear(p, next.Body)
			continue
		}
		p.mu.Lock()
		p.calls[next.ID] <- next.Body
		delete(p.calls, next.ID)
		p.mu.Unlock()
	}
	return lines.Err()
}

// end keeps why the worker ended, if it should not have.
func (p *Process[Request, Reply]) end(problem, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case problem != nil:
		p.err = problem
	case p.closed:
		p.err = err
	case !p.killed.Load(), p.cmd.ProcessState.Exited(): // before it was killed
		p.err = errors.Join(errors.New("a worker ended by itself"), err)
	}
}

// Ask sends a request and waits for the reply. It returns false if the worker
// ended before.
func (p *Process[Request, Reply]) Ask(request Request) (reply Reply, ok bool) {
	answer := make(chan Reply, 1)
	p.send(request, answer)
	select {
	case reply = <-answer:
		return reply, true
	case <-p.done:
	}
	select {
	case reply = <-answer:
		return reply, true
	default:
		return reply, false
	}
}

func (p *Process[Request, Reply]) send(request Request, answer chan Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.calls[p.last] = answer
	if text, err := json.Marshal(line[Request]{p.last, request}); err != nil {
		panic(fmt.Sprintf("worker: request: %v", err))
	} else {
		_, _ = p.input.Write(append(text, '\n')) // if the worker is gone, done tells
	}
}

// Kill ends the worker as kill -9 does.
func (p *Process[Request, Reply]) Kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill()
}

// Signal sends a signal to the worker.
func (p *Process[Request, Reply]) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the worker has ended and everything it printed was read.
func (p *Process[Request, Reply]) Done() <-chan struct{} { return p.done }

// Problem returns why the worker has ended, unless it was killed or closed.
func (p *Process[Request, Reply]) Problem() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Close lets the worker answer the requests that it has and end, and waits for
// that. It returns what went wrong in it.
func (p *Process[Request, Reply]) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.input.Close()
	<-p.done
	return p.err
}

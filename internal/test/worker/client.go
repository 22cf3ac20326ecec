package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Client sends requests to a worker that calls [Serve]. It is safe for
// concurrent use.
type Client[Request, Reply any] struct {
	*Process
	done chan struct{}

	mu     sync.Mutex
	last   int
	calls  map[int]chan Answer[Reply]
	closed bool
	err    error // set before done is closed
}

// An Answer is a reply and the time when it came.
type Answer[Reply any] struct {
	Reply Reply
	At    time.Time
}

// NewClient returns a client of a worker. It calls hear with each line that the
// worker prints by itself, one at a time. From now on only the client reads the
// output of the worker and waits for it.
func NewClient[Request, Reply any](p *Process, hear func(*Client[Request, Reply], Reply)) *Client[Request, Reply] {
	c := &Client[Request, Reply]{Process: p, done: make(chan struct{}), calls: map[int]chan Answer[Reply]{}}
	go c.receive(hear)
	return c
}

func (c *Client[Request, Reply]) receive(hear func(*Client[Request, Reply], Reply)) {
	defer close(c.done)
	for {
		var reply Reply
		id, ok, err := c.readLine(&reply)
		at := time.Now()
		if !ok {
			c.end(err)
			return
		}
		if id == 0 {
			hear(c, reply)
			continue
		}
		c.mu.Lock()
		c.calls[id] <- Answer[Reply]{reply, at}
		delete(c.calls, id)
		c.mu.Unlock()
	}
}

// end waits for the worker and keeps why it ended, if it should not have.
func (c *Client[Request, Reply]) end(problem error) {
	if problem != nil {
		c.Kill()
	}
	err := c.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case problem != nil:
		c.err = problem
	case c.killed.Load():
	case c.closed:
		c.err = err
	default:
		c.err = errors.Join(errors.New("a worker ended by itself"), err)
	}
}

// Send sends a request. The answer comes through the channel, unless the worker
// ends before; see Await.
func (c *Client[Request, Reply]) Send(request Request) <-chan Answer[Reply] {
	answer := make(chan Answer[Reply], 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.calls[c.last] = answer
	if text, err := json.Marshal(line[Request]{c.last, request}); err != nil {
		panic(fmt.Sprintf("worker: request: %v", err))
	} else {
		_, _ = c.input.Write(append(text, '\n')) // if the worker is gone, done tells
	}
	return answer
}

// Await waits for an answer. It returns false if the worker ended before.
func (c *Client[Request, Reply]) Await(answer <-chan Answer[Reply]) (Answer[Reply], bool) {
	select {
	case a := <-answer:
		return a, true
	case <-c.done:
	}
	select {
	case a := <-answer:
		return a, true
	default:
		return Answer[Reply]{}, false
	}
}

// Ask sends a request and waits for the reply.
func (c *Client[Request, Reply]) Ask(request Request) (Reply, bool) {
	a, ok := c.Await(c.Send(request))
	return a.Reply, ok
}

// Done is closed when the worker has ended and everything it printed was read.
func (c *Client[Request, Reply]) Done() <-chan struct{} { return c.done }

// Problem returns why the worker has ended, unless it was killed or closed.
func (c *Client[Request, Reply]) Problem() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close lets the worker answer the requests that it has and end, and waits for
// that. It returns what went wrong in it.
func (c *Client[Request, Reply]) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.input.Close()
	<-c.done
	return c.err
}

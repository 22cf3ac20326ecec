package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// A message is what a user sends: 71 bytes of text in every measurement.
type message struct {
	User string `json:"user" river:"unique"`
	ID   string `json:"id" river:"unique"`
	Text string `json:"text"`
}

// newMessage returns the n-th message of a data set. Its id is its number, so
// that ids of different rounds differ.
func newMessage(user string, n int64) message {
	return message{
		User: user, ID: fmt.Sprintf("m%08d", n),
		Text: fmt.Sprintf("Good evening! I have lost my key. Could you let me in? Request %08d", n),
	}
}

// A model answers messages. It takes no time: what is measured is what the
// contender does besides.
type model func(m message) string

func scripted(message) string { return "Good evening. I am on my way, please wait at the door." }

// A handler handles messages durably, on a data set that is open.
type handler interface {
	// handle returns the answer when the message and the answer are stored.
	handle(ctx context.Context, m message) (string, error)
	// texts returns the stored messages of a user, oldest first.
	texts(ctx context.Context, user string) ([]string, error)
	close() error
}

// A contender is a way to handle messages durably, each only once, also if it is
// sent twice.
type contender struct {
	name    string
	engines []string
	// ordered contenders handle the messages of a user one at a time and in the
	// order in which they were accepted.
	ordered bool
	open    func(ctx context.Context, s site, answer model) (handler, error)
}

var contenders = []contender{
	{name: "rows", engines: []string{"sqlite", "postgres", "mysql"}, ordered: true, open: openRows},
	{name: "rows", engines: []string{"redis"}, ordered: true, open: openRedisRows},
	{name: "dbos queue", engines: []string{"sqlite", "postgres"}, ordered: true, open: openDBOS},
	{name: "river", engines: []string{"postgres"}, open: openRiver},
	{name: "ours", engines: engineNames, ordered: true, open: openOurs},
}

// contendersOn returns the contenders that an engine has.
func contendersOn(engine string) []contender {
	return slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return !slices.Contains(c.engines, engine)
	})
}

// waiters hands answers to the callers that wait for them in this process. It
// serves contenders whose own way to wait is slower: it polls.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]chan string
}

// expect must be called before the message is sent.
func (w *waiters) expect(m message) func(ctx context.Context) (string, error) {
	answered := make(chan string, 1)
	key := m.User + "/" + m.ID
	w.mu.Lock()
	if w.waiting == nil {
		w.waiting = map[string]chan string{}
	}
	w.waiting[key] = answered
	w.mu.Unlock()
	return func(ctx context.Context) (string, error) {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.waiting, key)
		}()
		select {
		case reply := <-answered:
			return reply, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// answer hands over the answer to a message that is stored.
func (w *waiters) answer(m message, reply string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.waiting[m.User+"/"+m.ID] <- reply:
	default: // nobody waits, or the message was handled again
	}
}

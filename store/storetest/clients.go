package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/agentstate/state/store"
)

// clientKeys is the number of keys that concurrent clients share.
const clientKeys = 5

// recorder records the operations of concurrent clients with the times of one
// clock.
type recorder struct {
	prefix string // of all keys
	began  time.Time

	mu      sync.Mutex
	history history
}

func newRecorder(prefix string) *recorder { return &recorder{prefix: prefix, began: time.Now()} }

func (r *recorder) now() int64       { return int64(time.Since(r.began)) }
func (r *recorder) key(i int) string { return r.prefix + strconv.Itoa(i) }

// perform executes an operation of a client and records it.
func (r *recorder) perform(
	client int, o operation, execute func(operation) (operationResult, error),
) (operationResult, error) {
	call := r.now()
	result, err := execute(o)
	end := r.now()
	if err == nil && result.Outcome == failed {
		err = fmt.Errorf("%s: %s", o.Op, result.Problem)
	}
	if err != nil {
		return result, err
	}
	if result.Outcome == unknown {
		if o.Op == "get" {
			return result, nil // it has no effect and no result
		}
		end = math.MaxInt64 // it may still be made
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: o, Call: call, Output: result, Return: end})
	return result, nil
}

// client performs random operations.
type client struct {
	recorder *recorder
	number   int
	random   *rand.Rand
	seen     [clientKeys]store.Revision
}

func newClient(r *recorder, number int, seed uint64) *client {
	return &client{recorder: r, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
}

// run performs as many operations as turns says.
func (c *client) run(turns int, execute func(o operation) (operationResult, error)) error {
	for turn := range turns {
		i := c.random.IntN(clientKeys)
		result, err := c.recorder.perform(c.number, c.choose(i, turn), execute)
		if err != nil {
			return err
		}
		c.learn(i, result)
	}
	return nil
}

// choose returns an operation on a key.
func (c *client) choose(i, turn int) operation {
	o := operation{Op: "put", Key: c.recorder.key(i), Value: fmt.Sprintf("%d.%d", c.number, turn)}
	switch n := c.random.IntN(100); {
	case n < 30:
		o.Op, o.Value = "get", ""
	case n < 40: // Always
	case n < 55:
		o.Absent = true
	case n < 80:
		o.Revision = c.seen[i]
	case n < 95:
		o.Op, o.Value, o.Revision = "delete", "", c.seen[i]
	default:
		o.Op, o.Value = "delete", ""
	}
	return o
}

// learn updates the revision that the client knows of a key. After a conflict,
// the client often keeps a stale revision: its condition must never hold again.
func (c *client) learn(i int, result operationResult) {
	if result.Revision != "" {
		c.seen[i] = result.Revision
	}
	if result.Outcome == conflict && c.random.IntN(2) == 0 {
		c.seen[i] = ""
	}
}

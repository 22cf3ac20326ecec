package storetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

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

func (r *recorder) now() int64               { return r.timeOf(time.Now()) }
func (r *recorder) timeOf(t time.Time) int64 { return int64(t.Sub(r.began)) }
func (r *recorder) key(i int) string         { return r.prefix + strconv.Itoa(i) }

func (r *recorder) record(client int, o operation, call int64, result operationResult, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.addOperation(client, o, call, result, end)
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

// run performs as many operations as turns says. perform returns the result of
// an operation and the time at which the result was known.
func (c *client) run(turns int, perform func(turn int, o operation) (operationResult, int64, error)) error {
	for turn := range turns {
		i := c.random.IntN(clientKeys)
		o := c.choose(i, turn)
		call := c.recorder.now()
		result, end, err := perform(turn, o)
		if err != nil {
			return err
		}
		if result.Outcome == failed {
			return fmt.Errorf("%s: %s", o.Op, result.Problem)
		}
		c.learn(i, result)
		c.recorder.record(c.number, o, call, result, end)
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

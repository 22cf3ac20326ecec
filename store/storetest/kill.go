package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
)

// Kill tests that acknowledged writes survive the death of their process. In
// each cycle, it starts a process that writes to the data set at an address,
// which must exist, kills it with SIGKILL within 30 ms of its first write,
// opens the data set again and compares. Each acknowledged write must be there.
// The write that was in flight must be there completely or not at all. See
// [Main].
func Kill(t *testing.T, address string, cycles int) {
	n := effort.LogSeed(t)
	random := rand.New(rand.NewPCG(n, 0))
	var before *killedProcess // checked again in the next cycle
	for cycle := range cycles {
		v := &killedProcess{task: task{Job: "write", Address: address, Prefix: newPrefix("kill"), Seed: random.Uint64()}}
		err := v.run(t.Context(), time.Duration(random.Int64N(int64(30*time.Millisecond))))
		if err == nil {
			err = v.checkStore(t, before)
		}
		if err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		before = v
	}
}

// plannedChange is a write of one key, or a batch of writes of all keys.
type plannedChange struct {
	keys   []string
	delete bool
	cond   bool // with the current revision as condition
}

// plan returns the change with a number. It depends on the seed only, so that
// the test knows from a number what the process did.
func (t task) plan(number int) plannedChange {
	random := rand.New(rand.NewPCG(t.Seed, uint64(number)))
	c := plannedChange{keys: t.keys(), cond: random.IntN(2) == 0}
	if random.IntN(3) > 0 {
		i := random.IntN(len(c.keys))
		c.keys = c.keys[i : i+1]
		c.delete = random.IntN(8) == 0
	}
	return c
}

func (t task) keys() []string { return []string{t.Prefix + "a", t.Prefix + "b", t.Prefix + "c"} }

// valueOf returns the value that a change writes to a key: its number and up to
// 20 KB.
func (t task) valueOf(number int, key string) []byte {
	random := rand.New(rand.NewPCG(t.Seed, uint64(key[len(key)-1])<<32|uint64(number)))
	value := make([]byte, 4+random.IntN(20_000)>>random.IntN(15))
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	binary.BigEndian.PutUint32(value, uint32(number))
	return value
}

// there returns the numbers of the changes whose values are there after a change,
// by key. The number of a key that is not there is 0.
func (t task) there(after int) map[string]int {
	numbers := map[string]int{}
	for number := 1; number <= after; number++ {
		c := t.plan(number)
		for _, key := range c.keys {
			if numbers[key] = number; c.delete {
				numbers[key] = 0
			}
		}
	}
	return numbers
}

// write is the job of a worker of Kill: it writes until it is killed, and
// prints the number of each acknowledged change.
func write(s store.Store, t task) error {
	known := map[string]store.Revision{}
	for number := 1; ; number++ {
		c := t.plan(number)
		writes := make([]store.Write, len(c.keys))
		for i, key := range c.keys {
			writes[i] = store.Write{Key: key, Value: t.valueOf(number, key), Delete: c.delete}
			if revision := known[key]; c.cond && revision != "" {
				writes[i].Cond = store.IfRevision(revision)
			} else if c.cond && !c.delete {
				writes[i].Cond = store.IfAbsent
			}
		}
		revisions, err := s.Batch(context.Background(), writes)
		if err != nil {
			return fmt.Errorf("change %d: %w", number, err)
		}
		if err := worker.Print(number); err != nil {
			return err
		}
		for i, key := range c.keys {
			known[key] = revisions[i]
		}
	}
}

// killedProcess is a worker that Kill kills.
type killedProcess struct {
	task
	acked int // number of the last acknowledged change
}

// run starts the process and kills it some time after its first change.
func (v *killedProcess) run(ctx context.Context, life time.Duration) error {
	p, err := worker.Start(ctx, v.task, func(p *worker.Process[int, int], number int) {
		if v.acked = number; number == 1 {
			time.AfterFunc(life, p.Kill)
		}
	})
	if err != nil {
		return err
	}
	<-p.Done()
	return p.Problem()
}

// errPartialBatch reports that only some writes of a batch are there.
var errPartialBatch = errors.New("only a part of a batch is there")

// checkStore opens the data set and compares it with the changes of the process
// and of the process before it. It then deletes the keys of the latter.
func (v *killedProcess) checkStore(t *testing.T, before *killedProcess) error {
	s := open(t, v.Address)
	defer func() { _ = s.Close() }()
	ctx := t.Context()
	if err := v.compare(ctx, s); err != nil {
		return err
	}
	if before == nil {
		return nil
	}
	if err := before.compare(ctx, s); err != nil {
		return fmt.Errorf("changes of the previous cycle: %w", err)
	}
	for _, key := range before.keys() {
		if err := store.Delete(ctx, s, key, store.Always); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the entries with the changes. A server may make the change
// that was in flight after the process has died. If this happens while Get reads,
// compareOnce sees a part of a batch. It cannot happen twice.
func (v *killedProcess) compare(ctx context.Context, s store.Store) error {
	err := v.compareOnce(ctx, s)
	if errors.Is(err, errPartialBatch) {
		err = v.compareOnce(ctx, s)
	}
	return err
}

func (v *killedProcess) compareOnce(ctx context.Context, s store.Store) error {
	entries, err := s.Get(ctx, v.keys()...)
	if err != nil {
		return err
	}
	acked, next := v.there(v.acked), v.there(v.acked+1) // which was in flight
	changed, made := 0, 0
	for _, e := range entries {
		number := 0
		if len(e.Value) >= 4 {
			number = int(binary.BigEndian.Uint32(e.Value))
		}
		if e.Revision != "" && !bytes.Equal(e.Value, v.valueOf(number, e.Key)) {
			return fmt.Errorf("key %s: a torn value of %d bytes", e.Key[len(v.Prefix):], len(e.Value))
		}
		if next[e.Key] != acked[e.Key] {
			changed++
		}
		switch number {
		case acked[e.Key]:
		case next[e.Key]:
			made++
		default:
			return fmt.Errorf("key %s: the write is lost: change %d was acknowledged, and there is %d",
				e.Key[len(v.Prefix):], acked[e.Key], number)
		}
	}
	if made > 0 && made < changed {
		return fmt.Errorf("change %d: %w: %d of %d keys", v.acked+1, errPartialBatch, made, changed)
	}
	if made > 0 {
		v.acked++ // must survive from now on
	}
	return nil
}

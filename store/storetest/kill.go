package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
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
	number int
}

// plan returns the change with a number. It depends on the seed only, so that
// the test knows from a number what the process did.
func (t task) plan(number int) plannedChange {
	random := rand.New(rand.NewPCG(t.Seed, uint64(number)))
	c := plannedChange{keys: t.keys(), cond: random.IntN(2) == 0, number: number}
	if random.IntN(3) > 0 {
		i := random.IntN(len(c.keys))
		c.keys = c.keys[i : i+1]
		c.delete = random.IntN(8) == 0
	}
	return c
}

func (t task) keys() []string { return []string{t.Prefix + "a", t.Prefix + "b", t.Prefix + "c"} }

// valueOf returns the value that a change writes to a key: 1 B to 20 KB. A
// value of at least 8 bytes contains its checksum and the number of the change.
func (t task) valueOf(number int, key string) []byte {
	sum := crc32.ChecksumIEEE([]byte(key))
	random := rand.New(rand.NewPCG(t.Seed, uint64(sum)<<32|uint64(number)))
	value := make([]byte, 1+random.IntN(20_000)>>random.IntN(15))
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	if len(value) >= 8 {
		binary.BigEndian.PutUint32(value[4:], uint32(number))
		binary.BigEndian.PutUint32(value, crc32.ChecksumIEEE(value[4:]))
	}
	return value
}

// write is the job of a worker of Kill: it writes until it is killed, and
// prints the number of each acknowledged change.
func write(s store.Store, t task) error {
	ctx := context.Background()
	revisions := map[string]store.Revision{}
	for number := 1; ; number++ {
		c := t.plan(number)
		writes := make([]store.Write, len(c.keys))
		for i, key := range c.keys {
			writes[i] = store.Write{Key: key, Value: t.valueOf(number, key), Delete: c.delete}
			if r, ok := revisions[key]; c.cond && ok {
				writes[i].Cond = store.IfRevision(r)
			} else if c.cond && !c.delete {
				writes[i].Cond = store.IfAbsent
			}
		}
		made := make([]store.Revision, 1)
		var err error
		switch w := writes[0]; {
		case len(writes) > 1:
			made, err = s.Batch(ctx, writes)
		case c.delete:
			err = store.Delete(ctx, s, w.Key, w.Cond)
		default:
			made[0], err = store.Put(ctx, s, w.Key, w.Value, w.Cond)
		}
		if err != nil {
			return fmt.Errorf("change %d: %w", number, err)
		}
		if err := worker.Print(number); err != nil {
			return err
		}
		for i, key := range c.keys {
			revisions[key] = made[i]
			if c.delete {
				delete(revisions, key)
			}
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
	p, err := v.start(ctx)
	if err != nil {
		return err
	}
	defer p.Stop()
	var timer *time.Timer
	for {
		var number int
		ok, err := p.Read(&number)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if v.acked++; number != v.acked {
			return fmt.Errorf("change %d came after change %d", number, v.acked-1)
		}
		if number == 1 {
			timer = time.AfterFunc(life, p.Kill)
			defer timer.Stop()
		}
	}
	err = p.Wait()
	if timer == nil || timer.Stop() || p.Exited() {
		return fmt.Errorf("the process ended by itself after %d changes: %w", v.acked, err)
	}
	return nil
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
// that was in flight after the process has died. If this happens between two
// Gets, compareOnce sees a part of a batch. It cannot happen twice.
func (v *killedProcess) compare(ctx context.Context, s store.Store) error {
	err := v.compareOnce(ctx, s)
	if errors.Is(err, errPartialBatch) {
		err = v.compareOnce(ctx, s)
	}
	return err
}

func (v *killedProcess) compareOnce(ctx context.Context, s store.Store) error {
	last := v.plan(v.acked + 1) // was in flight
	there := 0
	for _, key := range v.keys() {
		e, err := store.Get(ctx, s, key)
		exists := err == nil
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		number := v.lastOf(key, v.acked)
		switch {
		case v.hasChange(e.Value, exists, key, number):
		case slices.Contains(last.keys, key) && v.hasChange(e.Value, exists, key, last.number):
			there++
		default:
			return fmt.Errorf("key %s: change %d was acknowledged, but there is %s",
				key[len(v.Prefix):], number, v.describe(e.Value, exists, key))
		}
	}
	if there > 0 && there < len(last.keys) {
		return fmt.Errorf("change %d: %w: %d of %d keys", last.number, errPartialBatch, there, len(last.keys))
	}
	if there > 0 {
		v.acked = last.number // must survive from now on
	}
	return nil
}

// lastOf returns the number of the last change of a key up to a number, or 0.
func (v *killedProcess) lastOf(key string, number int) int {
	for number > 0 && !slices.Contains(v.plan(number).keys, key) {
		number--
	}
	return number
}

// hasChange reports whether an entry is the result of a change.
func (v *killedProcess) hasChange(value []byte, exists bool, key string, number int) bool {
	if number == 0 || v.plan(number).delete {
		return !exists
	}
	return exists && bytes.Equal(value, v.valueOf(number, key))
}

// describe describes the value that is there instead of the expected one.
func (v *killedProcess) describe(value []byte, exists bool, key string) string {
	if !exists {
		return "nothing: the write is lost"
	}
	for number := v.lastOf(key, v.acked); number > 0; number = v.lastOf(key, number-1) {
		if v.hasChange(value, true, key, number) {
			return "change " + strconv.Itoa(number) + ": the write is lost"
		}
	}
	if len(value) >= 8 && crc32.ChecksumIEEE(value[4:]) == binary.BigEndian.Uint32(value) {
		return fmt.Sprintf("change %d, which was not made", binary.BigEndian.Uint32(value[4:]))
	}
	return fmt.Sprintf("a torn value of %d bytes", len(value))
}

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

	"github.com/agentstate/state/internal/effort"
	"github.com/agentstate/state/internal/worker"
	"github.com/agentstate/state/store"
)

// Kill tests that what was acknowledged survives the death of the process that
// wrote it: as many times as cycles says, it starts a process that writes to the
// data set at the address, which has to exist, kills it (SIGKILL) at some moment
// of its first 30 ms, opens the data set again and compares. Each write that was
// acknowledged has to be there, and whole; the one that was under way may be
// there, whole, or not. See [Main].
func Kill(t *testing.T, address string, cycles int) {
	n := effort.LogSeed(t)
	random := rand.New(rand.NewPCG(n, 0))
	var before *victim // is looked at once more, after it was overtaken
	for cycle := range cycles {
		v := &victim{task: task{Job: "write", Address: address, Prefix: newPrefix("kill"), Seed: random.Uint64()}}
		err := v.run(t.Context(), time.Duration(random.Int64N(int64(30*time.Millisecond))))
		if err == nil {
			err = v.examine(t, before)
		}
		if err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		before = v
	}
}

// change is one thing that the victim does: a write of a key, or of all keys at
// once.
type change struct {
	keys   []string
	delete bool
	cond   bool // on the revision that is there
	number int
}

// plan returns the change of a number. What it is follows from the seed, so that
// the parent knows what the victim did from the numbers alone.
func (t task) plan(number int, batcher bool) change {
	random := rand.New(rand.NewPCG(t.Seed, uint64(number)))
	c := change{keys: t.keys(), cond: random.IntN(2) == 0, number: number}
	if !batcher || random.IntN(3) > 0 {
		i := random.IntN(len(c.keys))
		c.keys = c.keys[i : i+1]
		c.delete = random.IntN(8) == 0
	}
	return c
}

func (t task) keys() []string { return []string{t.Prefix + "a", t.Prefix + "b", t.Prefix + "c"} }

// valueOf returns what a change writes to a key: 1 B to 20 KB that nothing else
// writes. From 8 bytes on it says its number and its checksum.
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

// write is the job of a victim: it writes until it is killed, and says the number
// of each change that was acknowledged.
func write(s store.Store, t task) error {
	ctx := context.Background()
	batcher, ok := s.(store.Batcher)
	revisions := map[string]store.Revision{}
	for number := 1; ; number++ {
		c := t.plan(number, ok)
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
			made, err = batcher.Batch(ctx, writes)
		case c.delete:
			err = s.Delete(ctx, w.Key, w.Cond)
		default:
			made[0], err = s.Put(ctx, w.Key, w.Value, w.Cond)
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

// victim is a process that was killed.
type victim struct {
	task
	acked int // the last change that was acknowledged
}

// run starts the process and kills it some time after its first change.
func (v *victim) run(ctx context.Context, life time.Duration) error {
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

// errHalf is about a change of several keys of which only some are there.
var errHalf = errors.New("half of a batch is there")

// examine opens the data set and compares it with what the victim did, and what
// the one before it did, which it then deletes.
func (v *victim) examine(t *testing.T, before *victim) error {
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
		return fmt.Errorf("what was there one cycle ago: %w", err)
	}
	for _, key := range before.keys() {
		if err := s.Delete(ctx, key, store.Always); err != nil {
			return err
		}
	}
	return nil
}

// looks is how often compare looks for the other half of a change. Tests of stores
// that lose it on purpose set less.
var looks = 600

// compare compares the entries with the changes. A server may make the last change
// after its client is dead, even between two Gets. So compare looks again before it
// says that something is half there.
func (v *victim) compare(ctx context.Context, s store.Store) error {
	var err error
	for range looks {
		if err = v.look(ctx, s); !errors.Is(err, errHalf) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (v *victim) look(ctx context.Context, s store.Store) error {
	_, batcher := s.(store.Batcher)
	last := v.plan(v.acked+1, batcher) // was under way
	there := 0
	for _, key := range v.keys() {
		e, err := s.Get(ctx, key)
		exists := err == nil
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		number := v.lastOf(key, v.acked, batcher)
		switch {
		case v.is(e.Value, exists, key, number, batcher):
		case slices.Contains(last.keys, key) && v.is(e.Value, exists, key, last.number, batcher):
			there++
		default:
			return fmt.Errorf("key %s: change %d was acknowledged, but there is %s",
				key[len(v.Prefix):], number, v.describe(e.Value, exists, key, batcher))
		}
	}
	if there > 0 && there < len(last.keys) {
		return fmt.Errorf("change %d: %w: %d of %d keys", last.number, errHalf, there, len(last.keys))
	}
	if there > 0 {
		v.acked = last.number // and now it has to stay
	}
	return nil
}

// lastOf returns the last change of a key that is not after the number, or 0.
func (v *victim) lastOf(key string, number int, batcher bool) int {
	for number > 0 && !slices.Contains(v.plan(number, batcher).keys, key) {
		number--
	}
	return number
}

// is reports whether an entry is what the change of the number leaves.
func (v *victim) is(value []byte, exists bool, key string, number int, batcher bool) bool {
	if number == 0 || v.plan(number, batcher).delete {
		return !exists
	}
	return exists && bytes.Equal(value, v.valueOf(number, key))
}

// describe says what is there instead of what should be.
func (v *victim) describe(value []byte, exists bool, key string, batcher bool) string {
	if !exists {
		return "nothing: the write is lost"
	}
	for number := v.lastOf(key, v.acked, batcher); number > 0; number = v.lastOf(key, number-1, batcher) {
		if v.is(value, true, key, number, batcher) {
			return "change " + strconv.Itoa(number) + ": the write is lost"
		}
	}
	if len(value) >= 8 && crc32.ChecksumIEEE(value[4:]) == binary.BigEndian.Uint32(value) {
		return fmt.Sprintf("change %d, which was not made", binary.BigEndian.Uint32(value[4:]))
	}
	return fmt.Sprintf("a torn value of %d bytes", len(value))
}

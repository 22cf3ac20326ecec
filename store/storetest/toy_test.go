//go:build unix

package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(address string) (store.Store, error) {
		fault, path, _ := strings.Cut(address, ":")
		return &toy{path: path, fault: fault, seen: map[string]record{}}, nil
	}))
}

// toy is a simple store: each call locks, reads and replaces one file with all
// entries. A fault makes it wrong.
type toy struct {
	path, fault string

	mu     sync.Mutex
	seen   map[string]record
	memory map[string]record // instead of the file
}

type record struct {
	Value    []byte
	Revision store.Revision
}

// change calls a function that changes the data, and saves the data.
func (s *toy) change(change func(map[string]record) error) error {
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	data, err := s.load()
	if err != nil {
		return err
	}
	before := maps.Clone(data)
	if err := change(data); err != nil || maps.EqualFunc(before, data, func(a, b record) bool { return a.Revision == b.Revision }) {
		return err
	}
	return s.save(data)
}

func (s *toy) load() (map[string]record, error) {
	if s.memory != nil {
		return s.memory, nil
	}
	data := map[string]record{}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return data, nil
	}
	return data, errors.Join(err, json.Unmarshal(text, &data))
}

func (s *toy) save(data map[string]record) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	file, err := os.Create(s.path + ".new")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

func (s *toy) Get(_ context.Context, keys ...string) ([]store.Entry, error) {
	data, err := s.load()
	if err != nil {
		return nil, err
	}
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		r, ok := data[key]
		if s.fault == "stale" {
			s.mu.Lock()
			if old, known := s.seen[key]; known && rand.IntN(4) == 0 {
				r, ok = old, true
			}
			if s.seen[key] = r; !ok {
				delete(s.seen, key)
			}
			s.mu.Unlock()
		}
		entries[i].Key = key
		if ok {
			entries[i] = store.Entry{Key: key, Value: r.Value, Revision: r.Revision}
		}
	}
	return entries, nil
}

// Batch makes the writes one after the other if the fault is "half".
func (s *toy) Batch(_ context.Context, writes []store.Write) ([]store.Revision, error) {
	if s.fault == "dies" && worker.Is() && rand.IntN(5) == 0 { // the test itself writes too
		os.Exit(3)
	}
	if s.fault != "half" {
		return s.write(writes)
	}
	var all []store.Revision
	for _, w := range writes {
		revisions, err := s.write([]store.Write{w})
		if err != nil {
			return nil, err
		}
		time.Sleep(2 * time.Millisecond)
		all = append(all, revisions...)
	}
	return all, nil
}

func (s *toy) write(writes []store.Write) ([]store.Revision, error) {
	revisions := make([]store.Revision, len(writes))
	check := func(data map[string]record) error {
		for _, w := range writes {
			r, ok := data[w.Key]
			if !w.Cond.Holds(r.Revision, ok) {
				return store.ErrConflict
			}
		}
		return nil
	}
	apply := func(data map[string]record) {
		for i, w := range writes {
			if w.Delete {
				delete(data, w.Key)
				continue
			}
			revisions[i] = store.NewRevision()
			if s.fault == "reuse" {
				revisions[i] = store.Revision(fmt.Sprint(len(w.Value)))
			}
			data[w.Key] = record{w.Value, revisions[i]}
		}
	}
	return revisions, s.apply(check, apply)
}

// apply makes a write in the way of the fault.
func (s *toy) apply(check func(map[string]record) error, apply func(map[string]record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	right := func(data map[string]record) error {
		err := check(data)
		if err == nil {
			apply(data)
		}
		return err
	}
	switch {
	case s.fault == "forgets": // an acknowledged write is on disk only after the next write
		data, err := s.load()
		if err := errors.Join(err, s.save(data)); err != nil {
			return err
		}
		s.memory = data
		return right(data)
	case s.fault == "tears": // writes a value in two halves
		return s.change(func(data map[string]record) error {
			whole := maps.Clone(data)
			if err := right(whole); err != nil {
				return err
			}
			for key, r := range whole {
				if r.Revision != data[key].Revision {
					data[key] = record{r.Value[:len(r.Value)/2], r.Revision}
				}
			}
			err := s.save(data)
			time.Sleep(2 * time.Millisecond)
			maps.Copy(data, whole)
			maps.DeleteFunc(data, func(key string, _ record) bool { _, ok := whole[key]; return !ok })
			return errors.Join(err, s.save(data))
		})
	case s.fault == "races": // checks the condition before it takes the lock
		data, err := s.load()
		if err == nil {
			err = check(data)
		}
		if err != nil {
			return err
		}
		return s.change(func(data map[string]record) error { apply(data); return nil })
	case s.fault == "lies" && rand.IntN(20) == 0: // makes a write and reports a conflict
		_ = s.change(right)
		return store.ErrConflict
	case s.fault == "unsure" && rand.IntN(40) == 0: // not a fault: the outcome is unknown
		if rand.IntN(2) == 0 {
			_ = s.change(right)
		}
		return store.ErrUnknownOutcome
	}
	return s.change(right)
}

func (s *toy) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		data, err := s.load()
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if !strings.HasPrefix(key, prefix) || key <= after {
				continue
			}
			entry := store.Entry{Key: key}
			if values {
				entry.Value, entry.Revision = data[key].Value, data[key].Revision
			}
			if !yield(entry, ctx.Err()) {
				return
			}
		}
	}
}

func (s *toy) Durability() store.Durability { return store.DurabilityPower }
func (s *toy) Close() error                 { return nil }

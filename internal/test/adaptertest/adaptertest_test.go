package adaptertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// plain is an adapter without a framework. Adapters open sqlitestore.
var plain = adaptertest.Adapter{Open: openFile, Answer: adaptertest.Plain(
	func(_ context.Context, _ *workspace.Run, d *adaptertest.Desk, agent string) ([]*tool.Tool, error) {
		return d.Tools(agent), nil
	})}

func TestPlain(t *testing.T)       { adaptertest.Run(t, plain) }
func TestPlainKilled(t *testing.T) { adaptertest.Killed(t, plain) }

func TestRounds(t *testing.T) {
	n := 0
	require.Equal(t, 2, adaptertest.Rounds(10, []int{1}, func() []int { n++; return []int{max(1, n-7)} }), "rounds 9 and 10")
}

// openFile opens a store in memory that repeats the writes in a file.
func openFile(ctx context.Context, path string) (store.Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	f := &fileStore{Store: store.NewMemory(), file: file}
	for lines := json.NewDecoder(file); lines.More(); {
		var w store.Write
		if err := lines.Decode(&w); err != nil {
			return nil, err
		}
		if err := f.apply(ctx, w); err != nil {
			return nil, err
		}
	}
	return f, nil
}

type fileStore struct {
	store.Store
	mu   sync.Mutex
	file *os.File
}

func (f *fileStore) apply(ctx context.Context, w store.Write) error {
	if w.Delete {
		return f.Store.Delete(ctx, w.Key, store.Always)
	}
	_, err := f.Store.Put(ctx, w.Key, w.Value, store.Always)
	return err
}

// log writes a line at once, so that a killed process leaves whole lines.
func (f *fileStore) log(w store.Write) error {
	line, err := json.Marshal(struct {
		Key    string
		Value  []byte
		Delete bool
	}{w.Key, w.Value, w.Delete})
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	return err
}

func (f *fileStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.Store.Put(ctx, key, value, cond)
	if err != nil {
		return "", err
	}
	return r, f.log(store.Write{Key: key, Value: value})
}

func (f *fileStore) Delete(ctx context.Context, key string, cond store.Condition) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Store.Delete(ctx, key, cond); err != nil {
		return err
	}
	return f.log(store.Write{Key: key, Delete: true})
}

func (f *fileStore) Close() error { return errors.Join(f.Store.Close(), f.file.Close()) }

package adaptertest_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/internal/test/fakestore"
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

// write is a write without its condition, as a file has it.
type write struct {
	Key    string
	Value  []byte
	Delete bool
}

// openFile opens a store in memory that repeats the writes in a file, a line for
// each batch.
func openFile(ctx context.Context, path string) (store.Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	memory := store.NewMemory()
	for lines := json.NewDecoder(file); lines.More(); {
		var made []write
		if err := lines.Decode(&made); err != nil {
			return nil, err
		}
		var writes []store.Write
		for _, w := range made {
			writes = append(writes, store.Write{Key: w.Key, Value: w.Value, Delete: w.Delete})
		}
		if _, err := memory.Batch(ctx, writes); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	return fakestore.New(fakestore.Bare{Store: memory}, func(_ context.Context, c fakestore.Call, do func() error) error {
		if c.Writes == nil {
			return do()
		}
		mu.Lock()
		defer mu.Unlock()
		if err := do(); err != nil {
			return err
		}
		var made []write
		for _, w := range c.Writes {
			made = append(made, write{w.Key, w.Value, w.Delete})
		}
		line, err := json.Marshal(made)
		if err == nil { // at once, so that a killed process leaves whole lines
			_, err = file.Write(append(line, '\n'))
		}
		return err
	}), nil
}

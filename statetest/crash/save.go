package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// saved is a file of Save and of [Test].Save: what is stored, byte for byte,
// and the effects that were made so far. Revisions are not kept: those of a store
// into which a file is restored are new.
type saved struct {
	Format  int           `json:"format"`            // savedFormat
	After   string        `json:"after,omitempty"`   // the point whose write was the last, such as write_4
	Entries []savedEntry  `json:"entries"`           // of the store of the workspaces, in the order of the keys
	Effects []savedEffect `json:"effects,omitempty"` // in the order in which they were made
	Later   []savedEffect `json:"later,omitempty"`   // that the case of [Test].Save made afterwards, without results
}

const savedFormat = 1

// savedEntry is an entry of a store. Text has a value that is UTF-8, as a JSON
// string so that it stays as it is, and Bytes has any other.
type savedEntry struct {
	Key   string `json:"key"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"`
}

// savedEffect is an effect that was made, with the first result of its key.
type savedEffect struct {
	Name   string     `json:"name"`
	Key    string     `json:"key,omitempty"`
	Input  state.JSON `json:"input"`
	Run    string     `json:"run,omitempty"` // the id of the run that made it
	Result state.JSON `json:"result,omitempty"`
}

// savedOf returns what a world has stored, and its effects so far.
func savedOf(w *world, after string) (*saved, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &saved{Format: savedFormat, After: after}
	var err error
	if s.Entries, err = savedEntries(w.db); err != nil {
		return nil, err
	}
	for _, e := range w.effects {
		kept := savedEffect{Name: e.name, Key: e.key, Input: e.input, Run: e.run}
		kept.Result = w.byKey[[2]string{e.name, e.key}].result
		s.Effects = append(s.Effects, kept)
	}
	return s, nil
}

func savedEntries(db store.Store) ([]savedEntry, error) {
	var list []savedEntry
	for e, err := range db.Scan(context.Background(), "", "") {
		if err != nil {
			return nil, err
		}
		kept := savedEntry{Key: e.Key}
		if utf8.Valid(e.Value) {
			kept.Text = string(e.Value)
		} else {
			kept.Bytes = e.Value
		}
		list = append(list, kept)
	}
	return list, nil
}

// restore puts what was saved into a world that is empty.
func (s *saved) restore(w *world) error {
	if err := restoreEntries(w.db, s.Entries); err != nil {
		return err
	}
	for _, kept := range s.Effects {
		e := effect{name: kept.Name, key: kept.Key, input: kept.Input, run: kept.Run}
		w.effects = append(w.effects, e)
		w.byKey[[2]string{e.name, e.key}] = firstEffect{effect: e, result: kept.Result}
	}
	return nil
}

func restoreEntries(db store.Store, list []savedEntry) error {
	for _, e := range list {
		value := e.Bytes
		if value == nil {
			value = []byte(e.Text)
		}
		if _, err := db.Put(context.Background(), e.Key, value, store.IfAbsent); err != nil {
			return err
		}
	}
	return nil
}

// readSaved reads a file.
func readSaved(file string) (*saved, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &saved{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.Format != savedFormat {
		return nil, fmt.Errorf("%s has format %d, want %d", file, s.Format, savedFormat)
	}
	return s, nil
}

// write writes a file, which must not exist.
func (s *saved) write(file string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

// openSecret returns the name of a secret of the workspace that has a value, ""
// if there is none. A store that is not sealed has the value as it is.
func openSecret(w *workspace.Workspace) string {
	for _, f := range w.State().Fields() {
		if f.Secret && w.State().KV().Has(f.Name) {
			return "field " + f.Name
		}
	}
	for key, entry := range w.Memory().All() {
		if entry.Secret {
			return "memory entry " + key
		}
	}
	return ""
}

// Save writes what a store of workspaces holds to a file for [Resume], on update.
// Otherwise it only fails the test if the file is missing. A file that exists is
// never rewritten: save another version in another file.
//
// The file has no secrets: Save fails the test if a Secret field has a value in a
// version of a workspace that is still stored, unless it is sealed. Use a store of the test, in which nothing
// is under way or all processes stand still.
func Save(t testing.TB, file string, db store.Store, schema *state.Schema) {
	t.Helper()
	_, err := os.Stat(file)
	switch {
	case err == nil && kit.Updating():
		t.Logf("%s exists and stays as it is: save another version in another file", file)
		return
	case err == nil:
		return
	case !kit.Updating():
		t.Errorf("crash: Save: %s is missing: STATETEST_UPDATE=1 go test -run '^%s$' writes it", file, t.Name())
		return
	}
	s := &saved{Format: savedFormat}
	if s.Entries, err = savedEntries(db); err == nil {
		err = s.fit(schema)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = s.write(file)
	}
	if err != nil {
		t.Errorf("crash: Save: %s is not written: %v", file, err)
	}
}

// fit returns why what is saved cannot be written.
func (s *saved) fit(schema *state.Schema) error {
	if !s.hasWorkspace() {
		return errors.New("the store has no workspace")
	}
	ctx := context.Background()
	db := store.NewMemory() // a Manager writes to its store
	if err := restoreEntries(db, s.Entries); err != nil {
		return err
	}
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema})
	if err != nil {
		return err
	}
	defer m.Close()
	for name, err := range m.List(ctx) {
		if err == nil {
			err = checkOpen(ctx, m, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOpen returns an error if a workspace is not sealed and one of its versions
// has a secret.
func checkOpen(ctx context.Context, m *workspace.Manager, name string) error {
	now, err := m.View(ctx, name)
	switch {
	case errors.Is(err, workspace.ErrInvalidKey):
		return nil // it is sealed
	case err != nil:
		return err
	case len(now.Unknown) > 0:
		return fmt.Errorf("the schema does not have the stored fields %s, which may be secret", strings.Join(now.Unknown, ", "))
	}
	for version := now.Oldest; version <= now.Version; version++ {
		v, err := m.ViewAt(ctx, name, version)
		if err != nil {
			return err
		}
		if secret := openSecret(&v.Workspace); secret != "" {
			return fmt.Errorf("%s is secret and has a value: seal the workspaces with Options.Keys", secret)
		}
	}
	return nil
}

// hasWorkspace reports whether a workspace is saved, not only a holder of runs.
func (s *saved) hasWorkspace() bool {
	for _, e := range s.Entries {
		if strings.HasPrefix(e.Key, "agent:workspace:") {
			return true
		}
	}
	return false
}

// saveFiles writes what was stored after each write of the undisturbed case into
// the directory, unless it exists: the files of a version are never rewritten.
func (k *testCase) saveFiles(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		t.Logf("%s exists and stays as it is: save another version in another directory", dir)
		return
	}
	if k.unsealed != "" {
		t.Errorf("Save: %s is secret and has a value: seal the workspaces with Options.Keys", k.unsealed)
		return
	}
	for _, s := range k.saves {
		for _, e := range k.w.effects[len(s.Effects):] {
			s.Later = append(s.Later, savedEffect{Name: e.name, Input: e.input, Run: e.run})
		}
		// What is not in a workspace is not sealed.
		open, err := json.Marshal(saved{Effects: s.Effects, Later: s.Later})
		if text := string(open); err != nil || k.w.secrets.Mask(text) != text {
			t.Errorf("Save: an effect has a secret, which would be in the files as it is")
			return
		}
	}
	err := os.MkdirAll(dir, 0o755)
	for _, s := range k.saves {
		err = errors.Join(err, s.write(filepath.Join(dir, s.After+".json")))
	}
	if err != nil {
		t.Errorf("Save: %v", err)
	}
}

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// saved is a file of [Test].Save: what is stored, byte for byte, and the effects
// that were made so far. Revisions are not kept: those of a store into which a
// file is restored are new.
type saved struct {
	After   string       `json:"after"`             // the point whose write was the last, such as write_4
	Entries []savedEntry `json:"entries"`           // of the store of the workspaces, in the order of the keys
	Effects []effect     `json:"effects,omitempty"` // in the order in which they were made
	Later   []effect     `json:"later,omitempty"`   // that the case made afterwards
}

// savedEntry is an entry of a store. Text has a value that is UTF-8, as a JSON
// string so that it stays as it is, and Bytes has any other.
type savedEntry struct {
	Key   string `json:"key"`
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"`
}

// save keeps what is stored after a write.
func (k *testCase) save(after point) {
	v, err := k.observer.View(context.Background(), user)
	if err != nil || isEmpty(v) {
		return // there is no workspace yet
	}
	s := &saved{After: after.String()}
	for e, err := range k.w.db.List(context.Background(), "", "", true) {
		if err != nil {
			return
		}
		kept := savedEntry{Key: e.Key}
		if utf8.Valid(e.Value) {
			kept.Text = string(e.Value)
		} else {
			kept.Bytes = e.Value
		}
		s.Entries = append(s.Entries, kept)
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	s.Effects = slices.Clone(k.w.effects)
	k.saves = append(k.saves, s)
	if secret := openSecret(&v.Workspace); secret != "" && len(k.opts.Keys) == 0 {
		k.unsealed = secret
	}
}

// isEmpty reports whether there is no workspace.
func isEmpty(v *workspace.View) bool { return v.Version == 0 && v.Run == nil && len(v.Queue) == 0 }

// openSecret returns the name of a secret of the workspace that has a value, ""
// if there is none.
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
	// What is not in a workspace is not sealed.
	open, err := json.Marshal(k.w.effects)
	if text := string(open); err != nil || k.w.secrets.Mask(text) != text {
		t.Errorf("Save: an effect has a secret, which would be in the files as it is")
		return
	}
	err = os.MkdirAll(dir, 0o755)
	for _, s := range k.saves {
		s.Later = k.w.effects[len(s.Effects):]
		data, failed := json.MarshalIndent(s, "", "  ")
		if failed == nil {
			failed = os.WriteFile(filepath.Join(dir, s.After+".json"), append(data, '\n'), 0o644)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		t.Errorf("Save: %v", err)
	}
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
	for _, effects := range [][]effect{s.Effects, s.Later} {
		for i := range effects {
			if effects[i].Input, err = inputOf(effects[i].Input); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return s, nil
}

// restore puts what was saved into a world that is empty. The effects were made
// by the version.
func (s *saved) restore(w *world, version string) error {
	for _, e := range s.Entries {
		value := e.Bytes
		if value == nil {
			value = []byte(e.Text)
		}
		if _, err := store.Put(context.Background(), w.db, e.Key, value, store.IfAbsent); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range s.Effects {
		name := "effect_" + pointName(e.Name)
		w.numbers[name]++
		e.at, e.process = fmt.Sprintf("%s_%d", name, w.numbers[name]), version
		w.effects = append(w.effects, e)
		w.byKey[[2]string{e.Name, e.Key}] = e
		w.addEffect(e, "made")
	}
	return nil
}

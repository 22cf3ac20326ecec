package workspace

import (
	"context"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/wordsearch"
	"github.com/agentstate/state/tool"
)

// Tools returns the tools by which a model uses the memory: memory_set,
// memory_get, memory_delete and memory_list. They do not show secrets to the
// model, also where a key or an error repeats one. A secret that the model sets
// itself is, however, in the conversation, as an argument of its call.
//
// The calls of one step take effect in their order: package tool makes calls
// that write separately from all others.
func (m *Memory) Tools() []*tool.Tool {
	type key struct {
		Key string `json:"key" jsonschema:"what it is about, e.g. favourite_colour"`
	}
	type entry struct {
		key
		Value  string `json:"value" jsonschema:"what to remember"`
		Secret bool   `json:"secret,omitempty" jsonschema:"true for passwords, tokens and the like"`
	}
	return []*tool.Tool{
		tool.Must(tool.NewStateful("memory_set",
			"Remember something about the user for later conversations. What is remembered under the same key is replaced. "+
				"A secret is never shown again; it stays one until it is deleted.",
			func(_ context.Context, _ *state.State, in entry) (string, error) {
				if err := m.set(in.Key, in.Value, in.Secret); err != nil {
					secrets := m.redactor(nil)
					if in.Secret {
						secrets = secrets.Join(inside.NewRedactor([]string{in.Value}))
					}
					return "", &maskedError{secrets.Redact(err.Error()), err}
				}
				return "remembered", nil
			})),
		tool.Must(tool.New("memory_get",
			"Get what is remembered under a key: null if nothing is, "+masked+" in place of a secret.",
			func(_ context.Context, in key) (*string, error) {
				entry, found := m.Get(in.Key)
				if !found {
					return nil, nil
				}
				shown := entry.String()
				return &shown, nil
			})),
		tool.Must(tool.NewStateful("memory_delete",
			"Forget what is remembered under a key. The result says whether there was anything.",
			func(_ context.Context, _ *state.State, in key) (bool, error) { return m.Delete(in.Key) })),
		tool.Must(tool.New("memory_list",
			"List the keys under which something is remembered.",
			func(context.Context, struct{}) ([]string, error) {
				keys, secrets := m.List(), m.redactor(nil)
				for i, key := range keys {
					keys[i] = secrets.Redact(key)
				}
				return keys, nil
			})),
	}
}

// Search returns the entries in which words of the memory begin with those that
// are searched for, best first, each as its key and its value. It is a
// [loop.Search] for [loop.Recall]. Secrets are masked: they are found by their
// keys only.
func (m *Memory) Search(_ context.Context, _ *state.State, words string) ([]string, error) {
	secrets := m.redactor(nil)
	var entries []string
	for key, entry := range m.All() {
		entries = append(entries, secrets.Redact(key+": "+entry.String()))
	}
	query := wordsearch.Parse(words)
	var found []string
	for _, i := range query.Rank(entries) {
		found = append(found, "memory, "+query.Excerpt(entries[i], memoryExcerptBytes))
	}
	return found, nil
}

// memoryExcerptBytes is what Search returns of an entry.
const memoryExcerptBytes = 1 << 10

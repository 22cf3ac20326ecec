package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// memoryClock returns a clock that advances by a nanosecond with each reading.
func memoryClock() func() time.Time {
	var mu sync.Mutex
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.FixedZone("east", 3600))
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(1)
		return at
	}
}

func mustMemory(t testing.TB, fields map[string][]byte) *Memory {
	m, err := newMemory(fields, memoryClock())
	require.NoError(t, err)
	return m
}

func TestMemory(t *testing.T) {
	m := mustMemory(t, nil)
	require.Equal(t, []string{}, m.List())
	_, found := m.Get("city")
	require.False(t, found)

	require.NoError(t, m.Set("city", "Oslo"))
	require.NoError(t, m.SetSecret("pin", "4711"))
	require.NoError(t, m.Set("age", ""))
	first, found := m.Get("city")
	require.True(t, found)
	require.Equal(t, MemoryEntry{Value: "Oslo", CreatedAt: time.Date(2025, 1, 2, 2, 4, 5, 1, time.UTC)}, first)
	require.Equal(t, []string{"age", "city", "pin"}, m.List())

	require.NoError(t, m.Set("city", "Bergen"))
	second, _ := m.Get("city")
	require.Equal(t, "Bergen", second.Value)
	require.True(t, second.CreatedAt.After(first.CreatedAt), "a replaced entry is a new one")

	var got []string
	for key, entry := range m.All() {
		got = append(got, key+"="+entry.Value)
		require.NoError(t, m.Set("zoo", "written meanwhile"))
		if key == "city" {
			break
		}
	}
	require.Equal(t, []string{"age=", "city=Bergen"}, got)
	got = nil
	for key := range m.All() {
		_, err := m.Delete("zoo")
		require.NoError(t, err)
		got = append(got, key)
	}
	require.Equal(t, []string{"age", "city", "pin", "zoo"}, got, "as it was when the iteration began")

	for _, want := range []bool{true, false} {
		deleted, err := m.Delete("age")
		require.NoError(t, err)
		require.Equal(t, want, deleted)
	}
	require.Equal(t, []string{"city", "pin"}, m.List())
}

func TestSecretStaysSecret(t *testing.T) {
	m := mustMemory(t, nil)
	secret := func(want bool, value string) {
		t.Helper()
		entry, _ := m.Get("pin")
		require.Equal(t, value, entry.Value)
		require.Equal(t, want, entry.Secret)
		require.Equal(t, want, m.snapshot().secret("pin"))
	}
	require.NoError(t, m.Set("pin", "1"))
	secret(false, "1")
	require.NoError(t, m.SetSecret("pin", "2"))
	secret(true, "2")
	require.NoError(t, m.Set("pin", "3"))
	secret(true, "3")
	_, err := m.Delete("pin")
	require.NoError(t, err)
	require.NoError(t, m.Set("pin", "4"))
	secret(false, "4")
	require.False(t, m.snapshot().secret("nothing"))
}

func TestMemoryLimits(t *testing.T) {
	m := mustMemory(t, nil)
	key, value := strings.Repeat("k", 256), strings.Repeat("v", 64<<10)
	require.NoError(t, m.Set(key, value))
	require.NoError(t, m.Set("مى\u200cخواهم 👩‍🚀 <b>", "\x00\n\u2028\u202e\ufeff"), "values may have anything, and keys the characters that join others")
	for name, c := range map[string]struct{ key, value, limit string }{
		"no key":         {"", "v", ""},
		"long key":       {key + "k", "v", "NameBytes"},
		"two lines":      {"a\nb", "v", ""},
		"delete":         {"a\x7f", "v", ""},
		"next line":      {"a\u0085", "v", ""},
		"line separator": {"a\u2028b", "v", ""},
		"paragraph":      {"a\u2029b", "v", ""},
		"other way":      {"a\u202eb", "v", ""},
		"byte order":     {"\ufeffa", "v", ""},
		"key not UTF-8":  {"a\xff", "v", ""},
		"long value":     {"k", value + "v", "ValueBytes"},
		"not UTF-8":      {"k", "canary\xff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := m.snapshot()
			for _, set := range []func(string, string) error{m.Set, m.SetSecret} {
				err := set(c.key, c.value)
				require.True(t, strings.HasPrefix(err.Error(), "workspace: "), err)
				require.NotContains(t, err.Error(), "canary")
				require.NotContains(t, err.Error(), "vv")
				require.NotContains(t, err.Error(), "\n")
				var limit *state.LimitError
				if errors.As(err, &limit) {
					require.Equal(t, c.limit, limit.Name)
					require.Equal(t, limit.Limit+1, limit.Got)
				} else {
					require.Empty(t, c.limit)
					require.ErrorIs(t, err, ErrInvalid)
				}
			}
			require.Empty(t, m.snapshot().effectsSince(before))
		})
	}

	m = mustMemory(t, nil)
	for i := range 1000 {
		require.NoError(t, m.Set(fmt.Sprint(i), "v"))
	}
	var limit *state.LimitError
	require.ErrorAs(t, m.Set("1000", "v"), &limit)
	require.Equal(t, &state.LimitError{Name: "Keys", Field: "1000", Limit: 1000, Got: 1001}, limit)
	require.NoError(t, m.Set("999", "another"), "what is there can be replaced")
	_, err := m.Delete("0")
	require.NoError(t, err)
	require.NoError(t, m.Set("1000", "v"))
}

// Stored entries are read even if Set would refuse them.
func TestMemoryReadsWhatIsStored(t *testing.T) {
	fields := map[string][]byte{
		"a\nb":   []byte(`{"value":"\u0000","created_at":"2025-01-02T03:04:05+01:00"}`),
		"":       []byte(`{"created_at":"2025-01-02T02:04:05.000000001Z","secret":true,"value":"` + strings.Repeat("v", 70_000) + `"}`),
		"public": []byte(`{"value":"x","secret":false,"created_at":"2025-01-02T02:04:05Z"}`),
	}
	for i := range 1100 {
		fields[fmt.Sprint(i)] = fields["public"]
	}
	m := mustMemory(t, fields)
	require.Len(t, m.List(), len(fields))
	entry, _ := m.Get("a\nb")
	require.Equal(t, MemoryEntry{Value: "\x00", CreatedAt: time.Date(2025, 1, 2, 2, 4, 5, 0, time.UTC)}, entry)
	entry, _ = m.Get("")
	require.True(t, entry.Secret)
	require.Len(t, entry.Value, 70_000)
}

func TestCorruptMemory(t *testing.T) {
	for _, data := range []string{
		``, `null`, `[]`, `"canary"`, `{}`, `{"value":"canary"}`, `{"created_at":"2025-01-02T03:04:05Z"}`,
		`{"value":null,"created_at":"2025-01-02T03:04:05Z"}`, `{"value":1e999,"created_at":"2025-01-02T03:04:05Z"}`,
		`{"Value":"canary","created_at":"2025-01-02T03:04:05Z"}`, `{"value":"canary","created_at":"canary"}`, `{"value":"canary","created_at":7}`,
		`{"value":"canary","created_at":"2025-01-02T03:04:05Z","secret":"canary"}`, `{"value":"canary","created_at":"2025-01-02T03:04:05Z","secret":null}`,
		`{"value":"canary","value":"canary","created_at":"2025-01-02T03:04:05Z"}`, `{"value":"canary` + "\xff" + `","created_at":"2025-01-02T03:04:05Z"}`,
		`{"value":"canary","created_at":"2025-01-02T03:04:05Z"`, `{"value":"canary","created_at":"2025-01-02T03:04:05Z"}}`,
	} {
		m, err := newMemory(map[string][]byte{"the\nkey": []byte(data)}, memoryClock())
		require.Nil(t, m, data)
		require.ErrorIs(t, err, ErrCorrupt, data)
		require.ErrorContains(t, err, `memory "the\nkey"`)
		require.NotContains(t, err.Error(), "canary")
	}
}

// Entries are stored as this JSON. Members that are not known do no harm.
func TestMemoryIsStoredAsJSON(t *testing.T) {
	m := mustMemory(t, map[string][]byte{"k": []byte(`{"expires":[1,2.50],"value":"old","created_at":"2025-01-02T03:04:05Z"}`)})
	base := m.snapshot()
	require.NoError(t, m.SetSecret("k", "new"))
	effects := m.snapshot().effectsSince(base)
	require.Equal(t, []state.Effect{{Part: "memory", Field: "k", Kind: "set",
		Value: `{"value":"new","secret":true,"created_at":"2025-01-02T02:04:05.000000001Z"}`}}, effects)

	_, err := m.Delete("k")
	require.NoError(t, err)
	require.NoError(t, m.Set("k", "<&é"))
	require.Equal(t, state.JSON(`{"value":"<&é","created_at":"2025-01-02T02:04:05.000000002Z"}`), m.snapshot().effectsSince(nil)[0].Value)
}

func TestMemoryEnds(t *testing.T) {
	m := mustMemory(t, map[string][]byte{"k": []byte(`{"value":"v","created_at":"2025-01-02T03:04:05Z"}`)})
	m.end(state.ErrReadOnly)
	m.end(ErrFenced)
	require.Equal(t, state.ErrReadOnly, m.Set("k", "w"))
	require.Equal(t, state.ErrReadOnly, m.SetSecret("l", "w"))
	for _, key := range []string{"k", "l"} {
		_, err := m.Delete(key)
		require.Equal(t, state.ErrReadOnly, err)
	}
	_, err := m.Tools()[0].Call(t.Context(), state.New(nil), `{"key":"k","value":"w"}`)
	require.ErrorIs(t, err, state.ErrReadOnly)
	entry, _ := m.Get("k")
	require.Equal(t, "v", entry.Value)
}

// After random operations, the memory equals a map; the effects since a
// snapshot turn the content stored then into the present one, and name only
// changed entries; and a memory that is loaded again is equal.
func TestMemoryModel(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
		now := func() time.Time { at = at.Add(1); return at }
		m, err := newMemory(nil, now)
		require.NoError(t, err)
		model, stored, touched, base := map[string]MemoryEntry{}, map[string][]byte{}, map[string]bool{}, m.snapshot()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b", "b2", "c", "é", "<&>"}).Draw(t, "key")
			switch rapid.SampledFrom([]string{"set", "set", "secret", "delete", "commit", "reload"}).Draw(t, "op") {
			case "set":
				value := rapid.String().Draw(t, "value")
				require.NoError(t, m.Set(key, value))
				model[key], touched[key] = MemoryEntry{value, model[key].Secret, at}, true
			case "secret":
				value := rapid.String().Draw(t, "value")
				require.NoError(t, m.SetSecret(key, value))
				model[key], touched[key] = MemoryEntry{value, true, at}, true
			case "delete":
				deleted, err := m.Delete(key)
				require.NoError(t, err)
				_, present := model[key]
				require.Equal(t, present, deleted)
				delete(model, key)
				touched[key] = true
			case "reload":
				m, err = newMemory(stored, now)
				require.NoError(t, err)
				clear(model)
				for key, data := range stored {
					model[key] = readEntry(t, data)
				}
				base, touched = m.snapshot(), map[string]bool{}
			case "commit":
				last := ""
				for _, e := range m.snapshot().effectsSince(base) {
					require.Equal(t, "memory", e.Part)
					require.True(t, touched[e.Field])
					require.Greater(t, e.Field, last, "sorted, each once")
					last = e.Field
					switch _, present := stored[e.Field]; {
					case e.Kind == "set":
						stored[e.Field] = []byte(e.Value)
					default:
						require.Equal(t, state.EffectDelete, e.Kind)
						require.True(t, present)
						delete(stored, e.Field)
					}
				}
				base, touched = m.snapshot(), map[string]bool{}
				require.Len(t, stored, len(model))
				for key, data := range stored {
					require.True(t, model[key] == readEntry(t, data), key)
				}
			}
			require.Equal(t, append([]string{}, slices.Sorted(maps.Keys(model))...), m.List())
			for key, entry := range m.All() {
				got, found := m.Get(key)
				require.True(t, found && got == entry && entry == model[key], key)
			}
		}
	})
}

// readEntry reads the stored form independently.
func readEntry(t require.TestingT, data []byte) MemoryEntry {
	var e MemoryEntry
	require.NoError(t, json.Unmarshal(data, &e))
	return e
}

func TestMemoryConcurrency(t *testing.T) {
	m := mustMemory(t, nil)
	require.NoError(t, m.Set("both", "x"))
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				key := fmt.Sprintf("%d/%d", w, i)
				base := m.snapshot()
				require.NoError(t, m.Set(key, "v"))
				require.NoError(t, m.SetSecret("both", key))
				_, found := m.Get(key)
				require.True(t, found)
				require.GreaterOrEqual(t, len(m.snapshot().effectsSince(base)), 2)
				require.NotContains(t, m.Prompt(), "x")
				if i%2 == 0 {
					deleted, err := m.Delete(key)
					require.NoError(t, err)
					require.True(t, deleted)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, m.List(), 101)
}

// failures has the texts of failed assertions.
type failures struct{ strings.Builder }

func (f *failures) Errorf(format string, args ...any) { fmt.Fprintf(f, format, args...) }

// No form that is shown to people or to the model contains a secret; the API
// and the stored form do.
func TestMemoryShowsNoSecret(t *testing.T) {
	const secret = "Xq7canaryZ \"é</x>\n"
	m := mustMemory(t, nil)
	require.NoError(t, m.SetSecret("pin", secret))
	require.NoError(t, m.Set("city", "Oslo"))
	entry, _ := m.Get("pin")
	require.Equal(t, secret, entry.Value)
	require.Contains(t, string(m.snapshot().effectsSince(nil)[1].Value), "Xq7canaryZ")

	outs := shownForms(t, entry, &entry, []MemoryEntry{entry}, maps.Collect(m.All()), struct{ E MemoryEntry }{entry}, m)
	outs = append(outs, m.Prompt(), fmt.Sprint(m.List()))
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	outs = append(outs, cmp.Diff(m.snapshot()["city"], m.snapshot()["pin"], everything))
	var failure failures
	assert.Equal(&failure, m, mustMemory(t, nil))
	outs = append(outs, failure.String())
	require.Contains(t, failure.String(), "Diff:")
	for _, set := range []func(string, string) error{m.Set, m.SetSecret} {
		outs = append(outs, set("pin", secret+"\xff").Error(), set("a\n", secret).Error(), set("pin", strings.Repeat(secret, 10_000)).Error())
	}
	for _, x := range m.Tools() {
		for _, args := range []state.JSON{`{}`, `{"key":"pin"}`, `{"key":"city"}`, `{"key":"pin","value":1}`} {
			out, err := x.Call(t.Context(), state.New(nil), args)
			outs = append(outs, string(out), fmt.Sprint(err), string(x.Schema()), x.Description())
			require.NoError(t, m.SetSecret("pin", secret))
		}
	}
	requireHidden(t, "Xq7canaryZ", outs...)

	require.Equal(t, "[SECRET] [SECRET] \"[SECRET]\"", fmt.Sprintf("%v %s %#v", entry, entry, entry))
	require.NoError(t, m.Set("city", "Oslo"))
	city, _ := m.Get("city")
	require.Equal(t, "Oslo \"Oslo\"", fmt.Sprintf("%v %q", city, city))
	data, err := json.Marshal(city)
	require.NoError(t, err)
	require.Equal(t, `{"value":"Oslo","created_at":"`+city.CreatedAt.Format(time.RFC3339Nano)+`"}`, string(data))
	require.Equal(t, "the [SECRET]b and [SECRET] of Oslo", m.redactor(nil).Redact("the "+secret+"b and "+fmt.Sprintf("%x", secret)+" of Oslo"))
}

package state_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

func secretField(name string) *state.Field[string] {
	return &state.Field[string]{Name: name, Secret: true}
}

func TestRedactorIsAFixedSet(t *testing.T) {
	key := secretField("key")
	st := state.New(state.MustSchema(key))
	require.Nil(t, st.Redactor())
	require.Equal(t, "text", st.Redactor().Redact("text"), "a nil Redactor masks nothing")

	require.NoError(t, key.Set(st, "sk-old-key"))
	old := st.Redactor()
	require.Same(t, old, st.Redactor(), "it is made once")
	snapshot, fork := st.Snapshot(), st.Fork()
	require.Same(t, old, snapshot.Redactor())
	require.Same(t, old, fork.Redactor())

	require.NoError(t, key.Set(st, "sk-new-key"))
	require.NoError(t, key.Set(fork, "sk-fork-key"))
	const text = "sk-old-key sk-new-key sk-fork-key"
	require.Equal(t, "[SECRET] sk-new-key sk-fork-key", old.Redact(text))
	require.Equal(t, "sk-old-key [SECRET] sk-fork-key", st.Redact(text))
	require.Equal(t, "sk-old-key sk-new-key [SECRET]", fork.Redact(text), "only the fork knows its secrets")
	require.Equal(t, "[SECRET] sk-new-key sk-fork-key", snapshot.Redact(text))

	all := old.Join(st.Redactor(), nil, fork.Redactor(), old)
	require.Equal(t, "[SECRET] [SECRET] [SECRET]", all.Redact(text))
	require.Same(t, old, (*state.Redactor)(nil).Join(nil, old))
	require.Nil(t, (*state.Redactor)(nil).Join())
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", old, *old, old, old.LogValue()), "sk-")
}

func TestRedactorsOfAgentsDiffer(t *testing.T) {
	a := &state.Field[string]{Name: "a", Secret: true, Owner: "ann"}
	b := &state.Field[string]{Name: "b", Secret: true, Owner: "ben"}
	st := state.New(state.MustSchema(state.Team{"ann": nil, "ben": nil}, a, b))
	require.NoError(t, a.Set(st, "anns-secret"))
	require.NoError(t, b.Set(st, "bens-secret"))
	const text = "anns-secret bens-secret"
	for range 2 { // made, then from the cache
		require.Equal(t, "[SECRET] [SECRET]", st.Redactor().Redact(text))
		require.Equal(t, "[SECRET] bens-secret", st.As("ann").Redactor().Redact(text))
		require.Equal(t, "anns-secret [SECRET]", st.As("ben").Redactor().Redact(text))
		require.Equal(t, text, st.As("eve").Redactor().Redact(text))
	}
}

func TestRedactorConcurrently(t *testing.T) {
	key, pin := secretField("key"), &state.Field[int]{Name: "pin", Secret: true}
	st := state.New(state.MustSchema(key, pin))
	require.NoError(t, key.Set(st, "secret-0"))
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 50 {
				if g == 0 {
					_ = key.Set(st, fmt.Sprintf("secret-%d", i))
					_ = pin.Set(st, 100000+i)
					continue
				}
				r := st.Redactor()
				_ = r.Redact("secret-1 secret-2 100001")
				_ = r.Join(st.Fork().Redactor()).Redact("secret-3")
			}
		})
	}
	all.Wait()
	require.Equal(t, "[SECRET] [SECRET]", st.Redact("secret-49 100049"))
}

func TestRedactorWriter(t *testing.T) {
	key := secretField("key")
	st := state.New(state.MustSchema(key))
	var out strings.Builder
	w := st.Redactor().Writer(&out)
	_, err := io.WriteString(w, "nothing is secret")
	require.NoError(t, err)
	require.NoError(t, w.Close())

	require.NoError(t, key.Set(st, "4242-4242-4242"))
	w = st.Redactor().Writer(&out)
	for _, delta := range []string{"\nyour card 4242-", "4242-42", "42 was used, not 4242-", "!"} {
		_, err := io.WriteString(w, delta)
		require.NoError(t, err)
	}
	require.Equal(t, "nothing is secret\nyour card [SECRET] was used, not 4242-!", out.String(), "only what may be a secret is held back")
	require.NoError(t, w.Close())
}

// A writer that masks nothing keeps the contract of the others.
func TestWriterOfANilRedactor(t *testing.T) {
	var out strings.Builder
	w := (*state.Redactor)(nil).Writer(&out)
	_, err := io.WriteString(w, "text")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	n, err := io.WriteString(w, "more")
	require.Zero(t, n)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Equal(t, "text", out.String())

	broken := errors.New("broken")
	w = (*state.Redactor)(nil).Writer(&onceWriter{err: broken})
	_, err = io.WriteString(w, "text")
	require.ErrorIs(t, err, broken)
	_, err = io.WriteString(w, "text")
	require.ErrorIs(t, err, broken, "nothing may follow what is lost")
	require.ErrorIs(t, w.Close(), broken)

	w = (*state.Redactor)(nil).Writer(&onceWriter{})
	_, err = io.WriteString(w, "text")
	require.ErrorIs(t, err, io.ErrShortWrite)
}

// onceWriter takes nothing the first time, and everything after that.
type onceWriter struct {
	err  error
	used bool
}

func (w *onceWriter) Write(p []byte) (int, error) {
	if !w.used {
		w.used = true
		return 0, w.err
	}
	return len(p), nil
}

func TestRedactedJSONStaysJSON(t *testing.T) {
	login := &state.Field[map[string]any]{Name: "login", Secret: true}
	st := state.New(state.MustSchema(login))
	require.NoError(t, login.Set(st, map[string]any{"password": "hunter22", "retries": 3, "id": 123456789}))
	for text, want := range map[string]string{
		`{"n":3,"temperature":0.3}`:             `{"n":"[SECRET]","temperature":0.3}`,
		`[3, -3, 3.5, 33, 1234567890, "3"]`:     `["[SECRET]", "[SECRET]", 3.5, 33, "[SECRET]", "[SECRET]"]`,
		`{"password":"hunter22","hunter22":{}}`: `{"[SECRET]":"[SECRET]","[SECRET]":{}}`,
		"{\"n\":3}\n{\"n\":3}\n":                "{\"n\":\"[SECRET]\"}\n{\"n\":\"[SECRET]\"}\n",
		`data: {"n":3}`:                         `data: {"n":[SECRET]}`,
		`{"n":3} and 3`:                         `{"n":"[SECRET]"} and [SECRET]`,
	} {
		require.Equal(t, want, st.Redact(text))
	}
}

// requireAllocs measures the least of some runs, because the collector and the
// race detector empty pools.
func requireAllocs(t *testing.T, want float64, f func()) {
	t.Helper()
	least := testing.AllocsPerRun(1, f)
	for range 20 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	require.LessOrEqual(t, least, want)
}

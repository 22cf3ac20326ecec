package state_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	xmaps "golang.org/x/exp/maps"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove that the value of a secret field is in nothing that
// is printed, logged, listed or returned as an error, that its readers get it
// exactly, and that Redact finds it in every encoding that it promises.

// vaultLogin is a secret with a structure.
type vaultLogin struct {
	User  string   `json:"user"`
	Pass  string   `json:"pass"`
	Codes []string `json:"codes,omitempty"`
	Pin   int64    `json:"pin"`
}

// vault is a schema with secret fields of many types, whose handlers and
// validations do their best to give the values away.
type vault struct {
	schema *state.Schema
	text   *state.Field[string]
	login  *state.Field[vaultLogin]
	logins *state.Field[[]vaultLogin]
	list   *state.Field[[]string]
	byName *state.Field[map[string]string]
	any    *state.Field[any]
	bytes  *state.Field[[]byte]
	pin    *state.Field[int64]
	fails  *state.Field[string] // its handler fails once it is set
	panics *state.Field[string] // its handler panics once it is set
	picky  *state.Field[string] // its validation quotes what is not "ok"
	throws *state.Field[string] // its validation panics with what is not "ok"
	small  *state.Field[string] // MaxBytes
	when   *state.Field[time.Time]
	addr   *state.Field[netip.Addr]
	public *state.Field[string] // no secret
}

func newVault(t testing.TB) *vault {
	v := &vault{
		text:   &state.Field[string]{Name: "text", Owner: "ann", Read: state.Only("ben"), Secret: true},
		login:  &state.Field[vaultLogin]{Name: "login", Owner: "ann", Secret: true},
		logins: &state.Field[[]vaultLogin]{Name: "logins", Owner: "ann", Secret: true},
		list:   &state.Field[[]string]{Name: "list", Owner: "ann", Read: state.Public, Write: state.Public, Secret: true},
		byName: &state.Field[map[string]string]{Name: "by_name", Owner: "ann", Secret: true, Handler: state.MergeMap[map[string]string]()},
		any:    &state.Field[any]{Name: "any", Owner: "ann", Secret: true},
		bytes:  &state.Field[[]byte]{Name: "bytes", Owner: "ann", Secret: true},
		pin:    &state.Field[int64]{Name: "pin", Owner: "ann", Secret: true},
		small:  &state.Field[string]{Name: "small", Owner: "ann", Secret: true, MaxBytes: 1},
		when:   &state.Field[time.Time]{Name: "when", Owner: "ann", Secret: true},
		addr:   &state.Field[netip.Addr]{Name: "addr", Owner: "ann", Secret: true},
		public: &state.Field[string]{Name: "public", Read: state.Public, Write: state.Public},
		fails: &state.Field[string]{Name: "fails", Owner: "ann", Secret: true,
			Handler: state.NewHandler("fails", func(current string, present bool, update string) (string, error) {
				if present {
					return "", fmt.Errorf("cannot merge %q and %q: %w", current, update, errors.New(update))
				}
				return update, nil
			})},
		panics: &state.Field[string]{Name: "panics", Owner: "ann", Secret: true,
			Handler: state.NewHandler("panics", func(current string, present bool, update string) (string, error) {
				if present {
					panic(current + update)
				}
				return update, nil
			})},
		picky: &state.Field[string]{Name: "picky", Owner: "ann", Secret: true, Validate: func(s string) error {
			if s == "ok" {
				return nil
			}
			return fmt.Errorf("refused: %w", errors.New(s))
		}},
		throws: &state.Field[string]{Name: "throws", Owner: "ann", Secret: true, Validate: func(s string) error {
			if s == "ok" {
				return nil
			}
			panic(errors.New(s))
		}},
	}
	var err error
	v.schema, err = state.NewSchema(aclTeam, v.text, v.login, v.logins, v.list, v.byName, v.any, v.bytes, v.pin,
		v.fails, v.panics, v.picky, v.throws, v.small, v.when, v.addr, v.public)
	require.NoError(t, err)
	return v
}

// fill writes a secret to every field that takes it.
func (v *vault) fill(t testing.TB, st *state.State, s string, pin int64) {
	login := vaultLogin{User: "u" + s, Pass: s, Codes: []string{s}, Pin: pin}
	require.NoError(t, v.text.Set(st, s))
	require.NoError(t, v.login.Set(st, login))
	require.NoError(t, v.logins.Set(st, []vaultLogin{login, login}))
	require.NoError(t, v.list.Set(st, []string{s, "x" + s}))
	require.NoError(t, v.byName.Set(st, map[string]string{"key": s}))
	require.NoError(t, v.any.Set(st, map[string]any{"any_a": []any{s, map[string]any{"any_b": s}}, "any_n": pin}))
	require.NoError(t, v.bytes.Set(st, []byte(s)))
	require.NoError(t, v.pin.Set(st, pin))
	_, _ = v.fails.Delete(st)
	require.NoError(t, v.fails.Set(st, s))
	_, _ = v.panics.Delete(st)
	require.NoError(t, v.panics.Set(st, s))
	require.NoError(t, v.picky.Set(st, "ok"))
	require.NoError(t, v.throws.Set(st, "ok"))
	require.NoError(t, v.public.Set(st, "public"))
}

// failures returns the errors of every way to write a secret that fails.
func (v *vault) failures(st *state.State, s string, pin int64) map[string]error {
	kv := st.KV()
	errs := map[string]error{
		"handler fails":         v.fails.Set(st, s),
		"handler fails by name": kv.Set("fails", s),
		"handler panics":        v.panics.Set(st, s),
		"validation":            v.picky.Set(st, s),
		"validation by name":    kv.Replace("picky", s),
		"validation panics":     v.throws.Set(st, s),
		"max bytes":             v.small.Set(st, s),
		"replace, max bytes":    v.small.Replace(st, s),
		"text for a number":     kv.Set("pin", s),
		"number for a text":     kv.Set("text", pin),
		"text for a struct":     kv.Set("login", s),
		"struct":                kv.Set("login", map[string]any{"pass": pin}),
		"unknown member":        kv.Set("login", map[string]any{"pass": s, "nope": s}),
		"list for a number":     kv.Set("pin", []any{s}),
		"list":                  kv.Set("list", []any{s, pin, []any{s}}),
		"list of structs":       kv.Set("logins", []any{map[string]any{"pin": s}}),
		"values of a map":       kv.Set("by_name", map[string]any{"k": []any{s}}),
		"names in a map":        kv.Set("by_name", map[string]any{s: 1}),
		"names in any":          kv.Set("any", map[string]any{s: make(chan int)}),
		"names of members":      kv.Set("login", map[string]any{s: 1}),
		"a bad value of a name": v.byName.Set(st, map[string]string{s: "\xff"}),
		"not a time":            kv.Set("when", s),
		"not an address":        kv.Set("addr", s),
		"not base64":            kv.Set("bytes", s+"\x01"),
		"not storable":          kv.Set("any", map[string]any{"a": s, "b": make(chan string)}),
		"other handler":         kv.SetWith("text", s, state.MergeMap[map[string]string]()),
		"handler fails with": v.text.SetWith(st, s, state.NewHandler("own", func(current string, _ bool, update string) (string, error) {
			return "", errors.New(current + update)
		})),
		"handler panics with": v.text.SetWith(st, s, state.NewHandler("own", func(current string, _ bool, update string) (string, error) {
			panic(errors.New(current + update))
		})),
		"handler's result": v.text.SetWith(st, s, state.NewHandler("own", func(string, bool, string) (string, error) {
			return s + "\xff", nil
		})),
		"update's result": v.text.Update(st, func(string) (string, error) { return s + "\xff", nil }),
		"not UTF-8":       v.text.Set(st, s+"\xff"),
		"patch":           st.Patch(map[string]any{"pin": s, "login": s, "when": s, "picky": s, "throws": s, "small": s}),
		"secret handlers": st.As("cyd").Patch(map[string]any{"pin": s, "login": s, "when": s}),
		"stranger":        v.text.Set(st.As("mallory"), s),
		"masked":          kv.Set("text", state.Masked{}),
	}
	_, errs["as int"] = state.GetAs[int](st, "text")
	_, errs["as time"] = state.GetAs[time.Time](st, "text")
	_, errs["as address"] = state.GetAs[netip.Addr](st, "text")
	_, errs["as struct"] = state.GetAs[vaultLogin](st, "any")
	_, errs["as list"] = state.GetAs[[]int](st, "list")
	_, errs["as text"] = state.GetAs[string](st, "pin")
	_, errs["as small"] = state.GetAs[int8](st, "pin")
	_, errs["denied"] = v.text.Get(st.As("cyd"))
	errs["join"] = func() error {
		a, b := st.Fork(), st.Fork()
		return errors.Join(v.text.Replace(a, s+"a"), v.text.Replace(b, s+"b"), st.Join(a, b))
	}()
	errs["join of merges"] = func() error {
		a := st.Fork()
		_, _ = v.fails.Delete(st)
		return errors.Join(v.list.Set(a, []string{s}), v.fails.Replace(a, s+"c"), st.Join(a))
	}()
	return errs
}

// outputs gives what every surface shows of a state.
func outputs(st *state.State, other *state.State) map[string]string {
	out := map[string]string{}
	show := func(name string, v any) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x", "%T", "%p", "%10.3v", "%!"} {
			out[name+" "+verb] = fmt.Sprintf(verb, v)
		}
		data, err := json.Marshal(v)
		out[name+" json"] = fmt.Sprint(string(data), err)
		data, err = xml.Marshal(v)
		out[name+" xml"] = fmt.Sprint(string(data), err)
		var b bytes.Buffer
		err = gob.NewEncoder(&b).Encode(v)
		out[name+" gob"] = fmt.Sprint(b.String(), err)
		b.Reset()
		for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
			slog.New(h).Info("x", "v", v, slog.Group("g", "v", v))
			slog.New(h).With("v", v).Error(fmt.Sprint(v))
		}
		out[name+" slog"] = b.String()
		b.Reset()
		err = template.Must(template.New("").Parse("{{.}} {{printf `%+v` .}} {{js .}}")).Execute(&b, v)
		out[name+" template"] = fmt.Sprint(b.String(), err)
		func() {
			defer func() {
				p := recover()
				out[name+" panic"] = fmt.Sprint(p)
			}()
			panic(v)
		}()
	}
	show("state", st)
	show("state by value", reflect.ValueOf(st).Elem().Interface())
	show("in a struct", struct {
		S     *state.State
		inner *state.State
		M     map[string]*state.State
		Any   any
	}{st, st, map[string]*state.State{"k": st}, st})
	show("embedded", struct{ *state.State }{st})
	show("in a list", []*state.State{st, other})
	show("kv", st.KV())
	show("history", st.History())
	show("all", st.KV().All())
	show("keys", st.KV().Keys())
	show("fields", st.Fields())
	show("log value", st.LogValue())
	show("context", state.NewContext(context.Background(), st))
	var changes []state.Change
	for c, err := range st.Changes(0) {
		if err == nil {
			changes = append(changes, c)
		}
	}
	show("changes", changes)
	for c := range st.Snapshot().Watch(context.Background(), 0) {
		changes = append(changes, c)
	}
	show("watch", changes)
	out["describe"] = st.Describe()
	out["go string"] = st.GoString()
	return out
}

// differences gives what a test prints that compares states. Testify prints by
// reflection, without methods, through all pointers.
func differences(st, other *state.State) map[string]string {
	out := map[string]string{}
	var said sayings
	assert.Equal(&said, st, other)
	assert.Equal(&said, []any{st.KV(), st.History()}, []any{other.KV(), other.History()})
	assert.EqualValues(&said, st, other.Snapshot())
	assert.ElementsMatch(&said, []*state.State{st}, []*state.State{other})
	assert.Contains(&said, []*state.State{st}, other)
	assert.Nil(&said, st)
	assert.Empty(&said, st)
	assert.IsType(&said, st, 1)
	assert.NotEqual(&said, st, st)
	assert.JSONEq(&said, said.json(st), `{}`)
	out["testify"] = said.String()
	func() {
		defer func() { out["go-cmp panic"] = fmt.Sprint(recover()) }()
		out["go-cmp"] = cmp.Diff(st, other)
	}()
	return out
}

// sayings is a testing.T that keeps what it is told.
type sayings struct{ strings.Builder }

func (s *sayings) Errorf(format string, args ...any) { fmt.Fprintf(s, format, args...) }
func (s *sayings) json(v any) string                 { data, _ := json.Marshal(v); return string(data) }

// encodings returns the forms of a secret that must not be found, for what is
// long enough not to be found by accident.
func encodings(s string) map[string]string {
	forms := map[string]string{"raw": s, "quoted": strconv.Quote(s), "ascii": strconv.QuoteToASCII(s)}
	plain, _ := json.Marshal(s)
	forms["json"] = string(plain)
	twice, _ := json.Marshal(string(plain[1 : len(plain)-1]))
	forms["json twice"] = string(twice)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	forms["json, no html"] = strings.TrimSpace(b.String())
	for _, quoted := range []string{"quoted", "ascii", "json", "json twice", "json, no html"} {
		forms[quoted] = forms[quoted][1 : len(forms[quoted])-1]
	}
	if len(s) >= 6 {
		forms["url"], forms["path"] = url.QueryEscape(s), url.PathEscape(s)
		forms["hex"], forms["HEX"] = hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s)))
		forms["spaced hex"] = fmt.Sprintf("% x", s)
		for name, e := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "raw base64": base64.RawStdEncoding, "url base64": base64.URLEncoding, "raw url base64": base64.RawURLEncoding} {
			forms[name] = e.EncodeToString([]byte(s))
		}
		forms["bytes"] = strings.Trim(fmt.Sprint([]byte(s)), "[]")
	}
	return forms
}

// secretValue returns a value that is found in no text by accident.
func secretValue(rng *rand.Rand) string {
	alphabets := []string{
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
		"s3cr€t\"'`\\/", "a\nb\r\tc'\"", "\x01\x02\x7f\u0085", "שלום\u202e\u200f\u2066", "日本語🔑é", "<>&;%+= \u2028", `{}[]:,"`,
	}
	shapes := []string{"%s", `{"pass":"%s","n":1}`, "Bearer %s", "postgres://u:%s@h/db?x=%%41", "-----BEGIN KEY-----\n%s\n-----END KEY-----\n", `"%s"`, "sk-%s", " %s "}
	n := 10 + rng.IntN(20)
	switch rng.IntN(6) {
	case 0:
		n = 200 + rng.IntN(300)
	case 1: // short, of characters that occur nowhere else
		short := []rune("ߘ߷ꙮ₪Ѭ")
		return string(short[rng.IntN(5)]) + string(short[rng.IntN(5)])
	}
	mixed := []rune(alphabets[rng.IntN(len(alphabets))] + alphabets[0])
	var b strings.Builder
	fmt.Fprintf(&b, "%x", rng.Uint32()|1<<31) // so that it is unique
	for range n {
		b.WriteRune(mixed[rng.IntN(len(mixed))])
	}
	return fmt.Sprintf(shapes[rng.IntN(len(shapes))], b.String())
}

func requireNoSecret(t *testing.T, where, text string, forms map[string]string) {
	t.Helper()
	for form, s := range forms {
		if i := strings.Index(text, s); i >= 0 {
			require.Failf(t, "a secret is shown", "%s: %s\n%s", where, form, text[max(0, i-100):min(len(text), i+len(s)+20)])
		}
	}
}

func TestSecretIsShownNowhere(t *testing.T) {
	for seed := range uint64(effort.Runs(3)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		v := newVault(t)
		old, s := secretValue(rng), secretValue(rng)
		oldPin, pin := int64(4e17)+rng.Int64N(1e17), int64(5e17)+rng.Int64N(1e17)
		forms := encodings(s)
		for name, form := range encodings(old) {
			forms["old "+name] = form
		}
		forms["pin"], forms["old pin"] = fmt.Sprint(pin), fmt.Sprint(oldPin)

		st, other := state.New(v.schema), state.New(v.schema)
		v.fill(t, st, old, oldPin)
		v.fill(t, other, secretValue(rng), pin)
		past := st.Snapshot()
		v.fill(t, st.As("ann").As("ann"), s, pin)
		branch, joined := st.Fork(), st.Fork()
		v.fill(t, branch, s, pin)
		require.NoError(t, v.list.Set(joined, []string{s}))
		require.NoError(t, v.text.Set(joined, s+s))
		require.NoError(t, st.Join(joined))
		at, err := st.At(st.Version() - 3)
		require.NoError(t, err)
		handles := map[string]*state.State{
			"host": st, "owner": st.As("ann"), "admitted": st.As("ben"), "other": st.As("cyd"), "stranger": st.As("mallory"),
			"branch": branch, "joined": joined, "snapshot": st.Snapshot(), "past": past, "at": at,
		}
		require.NoError(t, st.Update(func(tx *state.State) error {
			require.NoError(t, v.text.Update(tx, func(t string) (string, error) { return t + s, nil }))
			require.NoError(t, v.login.Replace(tx, vaultLogin{Pass: s, Pin: pin}))
			for where, text := range outputs(tx, other) {
				requireNoSecret(t, "tx: "+where, text, forms)
			}
			return nil
		}))
		for name, err := range v.failures(st, s, pin) {
			require.Error(t, err, name)
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				requireNoSecret(t, name+" error", fmt.Sprintf(verb, err), forms)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				data, _ := json.Marshal(e)
				requireNoSecret(t, name+" unwrapped", fmt.Sprintf("%+v %#v %s", e, e, data), forms)
			}
		}
		require.NoError(t, st.Revert(past))
		for name, handle := range handles {
			for where, text := range outputs(handle, other) {
				requireNoSecret(t, name+": "+where, text, forms)
			}
		}
		// Comparing costs more, so each program does it with one handle.
		names := xmaps.Keys(handles)
		slices.Sort(names)
		name := names[rng.IntN(len(names))]
		for where, text := range differences(handles[name], other) {
			requireNoSecret(t, name+": "+where, text, forms)
		}
	}
}

// A comparer that is let into everything finds no secret either.
func TestSecretIsNotInTheDifferenceOfEverything(t *testing.T) {
	effort.SkipShort(t)
	const s = "sk-live-99887766"
	everything := cmp.Exporter(func(reflect.Type) bool { return true })
	f := &state.Field[string]{Name: "f", Secret: true}
	l := &state.Field[[]string]{Name: "l", Secret: true}
	schema := state.MustSchema(f, l)
	st, other := state.New(schema), state.New(schema)
	require.NoError(t, f.Set(st, s))
	require.NoError(t, l.Set(st, []string{s}))
	require.NoError(t, f.Set(other, "another"))
	fork := st.Fork()
	require.NoError(t, f.Set(fork, s+s))
	for _, a := range []*state.State{st, fork, st.Snapshot()} {
		diff := cmp.Diff(a, other, everything)
		require.NotEmpty(t, diff)
		requireNoSecret(t, "go-cmp", diff, encodings(s))
	}
}

func TestSecretIsExactForWhoMayReadIt(t *testing.T) {
	for seed := range uint64(effort.Runs(100)) {
		s := secretValue(rand.New(rand.NewPCG(seed, 5)))
		v := newVault(t)
		st := state.New(v.schema)
		v.fill(t, st, s, 5)
		for _, h := range []*state.State{st, st.As("ann"), st.As("ann").Fork(), st.Snapshot().As("ben")} {
			got, err := v.text.Get(h)
			require.NoError(t, err)
			require.Equal(t, s, got)
			byName, ok := h.KV().Get("text")
			require.True(t, ok)
			require.Equal(t, s, byName)
			got, err = state.GetAs[string](h, "text")
			require.NoError(t, err)
			require.Equal(t, s, got)
			require.Equal(t, 2, state.ListLen(h, v.list))
			for i, e := range state.ListItems(h, v.list, 0) {
				require.Equal(t, []string{s, "x" + s}[i], e)
			}
		}
		login, err := v.login.Get(st)
		require.NoError(t, err)
		require.Equal(t, vaultLogin{User: "u" + s, Pass: s, Codes: []string{s}, Pin: 5}, login)
		require.Equal(t, map[string]string{"key": s}, v.byName.GetOr(st, nil))
		require.Equal(t, []byte(s), v.bytes.GetOr(st, nil))
	}
}

func TestSecretIsMaskedWhereValuesAreListed(t *testing.T) {
	v := newVault(t)
	st := state.New(v.schema)
	v.fill(t, st, "sk-live-99887766", 1)
	all := st.KV().All()
	require.Equal(t, state.Masked{}, all["text"])
	require.Equal(t, state.Masked{}, all["logins"])
	require.Equal(t, "public", all["public"])
	for c, err := range st.Changes(0) {
		require.NoError(t, err)
		switch {
		case c.Field == "public":
			require.Equal(t, "public", c.Value)
		case c.Op != state.OpDelete:
			require.Equal(t, state.Masked{}, c.Value, c.Field)
		}
	}
	require.Contains(t, st.Describe(), "- text (string) = [SECRET]\n")
	data, err := json.Marshal(st)
	require.NoError(t, err)
	require.Contains(t, string(data), `"text":"[SECRET]"`)
	require.Zero(t, reflect.TypeFor[state.Masked]().Size(), "it has no room for a value")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "[SECRET]", fmt.Sprintf(verb, state.Masked{}))
	}
}

func TestSecretMaskIsAcceptedByNoWrite(t *testing.T) {
	v := newVault(t)
	open := &state.Field[any]{Name: "open", Read: state.Public}
	st := state.New(state.MustSchema(aclTeam, v.text, v.list, v.any, v.byName, v.public, v.logins, open, state.AllowUndeclared))
	require.NoError(t, v.text.Set(st, "sk-live-99887766"))
	before, version := aclExport(t, st), st.Version()
	masked := state.Masked{}
	type inside struct{ M state.Masked }
	values := map[string]any{
		"itself": masked, "a pointer": &masked, "a list": []any{"a", masked}, "a typed list": []state.Masked{masked}, "an array": [1]state.Masked{},
		"a map": map[string]any{"k": masked}, "a typed map": map[string]state.Masked{"k": masked}, "deep": []any{map[string]any{"k": []any{masked}}},
		"a struct": inside{}, "a pointer to a struct": &inside{}, "structs": []inside{{}}, "all": st.KV().All(),
		"a key": map[any]any{masked: 1}, "an interface": []fmt.Stringer{masked},
	}
	for name, value := range values {
		for _, field := range []string{"text", "list", "any", "by_name", "public", "logins", "open", "undeclared"} {
			where := name + " to " + field
			require.ErrorContains(t, st.KV().Set(field, value), "state: ", where)
			require.ErrorContains(t, st.KV().Replace(field, value), "state: ", where)
			require.ErrorContains(t, st.KV().SetWith(field, value, state.Replace[any]()), "state: ", where)
			require.ErrorContains(t, st.Patch(map[string]any{field: value}), "state: ", where)
		}
		require.Error(t, open.Set(st, value), name)
		require.Error(t, open.Replace(st, value), name)
		require.Error(t, open.Update(st, func(any) (any, error) { return value, nil }), name)
		require.Error(t, open.SetWith(st, 1, state.NewHandler("h", func(any, bool, any) (any, error) { return value, nil })), name)
	}
	require.Error(t, st.Patch(st.KV().All()), "All cannot be written back")
	require.Equal(t, before, aclExport(t, st))
	require.Equal(t, version, st.Version())
	_, err := state.NewSchema(&state.Field[state.Masked]{Name: "m"})
	require.Error(t, err)
	_, err = state.NewSchema(&state.Field[[]inside]{Name: "m"})
	require.Error(t, err)
}

// An error of Import does not quote the data.
func TestSecretIsNotInTheErrorsOfImport(t *testing.T) {
	const s = "sk-live-99887766"
	v := newVault(t)
	st := state.New(v.schema)
	v.fill(t, st, s, 424242424242)
	data := aclExport(t, st)
	imports := func(schema *state.Schema, data string) error {
		_, err := state.Import(schema, []byte(data))
		return err
	}
	for name, err := range map[string]error{
		"cut":     imports(v.schema, data[:strings.Index(data, s)+len(s)]),
		"number":  imports(state.MustSchema(&state.Field[int]{Name: "text", Secret: true}), data),
		"time":    imports(state.MustSchema(&state.Field[time.Time]{Name: "text", Secret: true}), data),
		"address": imports(state.MustSchema(&state.Field[netip.Addr]{Name: "text", Secret: true}), data),
		"small":   imports(state.MustSchema(&state.Field[string]{Name: "text", Secret: true, MaxBytes: 2}), data),
		"control": imports(v.schema, strings.Replace(data, s, s+"\x01", 1)),
		"key":     imports(v.schema, `{"format":1,"fields":[{"name":"by_name","value":{"`+s+`":"a","`+s+`":"b"}}]}`),
		"format":  imports(v.schema, `"`+s+`"`),
	} {
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), s, name)
	}
}

func TestSecretThatWasReplacedIsNotInTheJournal(t *testing.T) {
	v := newVault(t)
	st := state.New(v.schema)
	require.NoError(t, v.text.Set(st, "the first secret"))
	require.NoError(t, v.list.Set(st, []string{"the first of a list"}))
	version := st.Version()
	require.NoError(t, v.text.Set(st, "the second secret"))
	require.NoError(t, v.list.Replace(st, []string{"the second of a list"}))
	past, err := st.At(version)
	require.NoError(t, err)
	require.NotEqual(t, "the first secret", v.text.GetOr(past, ""))
	require.NotEqual(t, []string{"the first of a list"}, v.list.GetOr(past, nil))
	_, err = v.text.Delete(st)
	require.NoError(t, err)
	past, err = st.At(version)
	require.NoError(t, err)
	require.NotContains(t, v.text.GetOr(past, ""), "secret", "deleted is deleted")
}

// Redact.

func TestSecretIsRedactedForWhoMayReadItOnly(t *testing.T) {
	v := newVault(t)
	st := state.New(v.schema)
	require.NoError(t, v.text.Set(st, "anns-and-bens-token"))
	require.NoError(t, v.list.Set(st, []string{"everybodys-token"}))
	require.NoError(t, v.pin.Set(st, 123456789))
	const text = "anns-and-bens-token everybodys-token 123456789"
	for _, tt := range []struct {
		as   []string
		want string
	}{
		{nil, "[SECRET] [SECRET] [SECRET]"},
		{[]string{"ann"}, "[SECRET] [SECRET] [SECRET]"},
		{[]string{"ben"}, "[SECRET] [SECRET] 123456789"},
		{[]string{"ann", "ben"}, "[SECRET] [SECRET] 123456789"},
		{[]string{"cyd"}, "anns-and-bens-token [SECRET] 123456789"},
		{[]string{"mallory"}, text},
		{[]string{""}, text},
	} {
		require.Equal(t, tt.want, aclRole{as: tt.as}.of(st).Redact(text), "%q", tt.as)
	}
	_, err := v.text.Delete(st)
	require.NoError(t, err)
	require.Equal(t, "anns-and-bens-token [SECRET] [SECRET]", st.Redact(text), "what is deleted is no secret any more")
	require.NoError(t, st.Fork().KV().Set("text", "everybody"))
	require.Equal(t, "everybody", st.Redact("everybody"))
}

// The tests below prove that Redact finds a secret in whatever Go value
// it is, and that values that JSON changes cannot be secrets.

// secretShape is a secret field of one Go type, a value for it, and the parts
// of the value that Redact must find.
type secretShape struct {
	name    string
	part    state.Part
	replace func(*state.State) error
	texts   []string // found in every encoding
	numbers []string // found as they are
}

func shapeOf[T any](name string, v T, texts ...string) secretShape {
	f := &state.Field[T]{Name: "f", Secret: true}
	return secretShape{name: name, part: f, replace: func(st *state.State) error { return f.Replace(st, v) }, texts: texts}
}

func (s secretShape) with(numbers ...string) secretShape {
	s.numbers = append(s.numbers, numbers...)
	return s
}

type (
	shapeToken   string
	shapeBytes   []byte
	shapeDigest  [20]byte
	shapeLetter  uint8
	shapeNumber  int64
	shapePointer *string
	shapeEmbed   struct{ Inner string }
	shapeTagged  struct {
		Key     []byte            `json:"k,omitempty"`
		ByName  map[string]string `json:"m"`
		Retries int64             `json:"r"`
		shapeEmbed
	}
)

// shapeOpaque keeps its text in a field that only its methods show.
type shapeOpaque struct{ text string }

func (o shapeOpaque) MarshalText() ([]byte, error)  { return []byte("opaque:" + o.text), nil }
func (o *shapeOpaque) UnmarshalText(b []byte) error { o.text = string(b[len("opaque:"):]); return nil }

// shapeEnvelope keeps bytes, names and a text and writes them in other words.
type shapeEnvelope struct {
	key   []byte
	names map[string]string
	text  *string
}

type shapeEnvelopeJSON struct {
	Key   string            `json:"wrapped_key"`
	Names map[string]string `json:"names"`
	Text  string            `json:"text"`
}

func (e shapeEnvelope) MarshalJSON() ([]byte, error) {
	return json.Marshal(shapeEnvelopeJSON{"v1." + hex.EncodeToString(e.key), e.names, "v1." + *e.text})
}

func (e *shapeEnvelope) UnmarshalJSON(data []byte) (err error) {
	var in shapeEnvelopeJSON
	if err = json.Unmarshal(data, &in); err != nil || in.Key == "" {
		return err
	}
	text := strings.TrimPrefix(in.Text, "v1.")
	e.names, e.text = in.Names, &text
	e.key, err = hex.DecodeString(strings.TrimPrefix(in.Key, "v1."))
	return err
}

// shapeMapKey is the key of a map with a text of its own.
type shapeMapKey struct{ Name string }

func (k shapeMapKey) MarshalText() ([]byte, error)  { return []byte("key/" + k.Name), nil }
func (k *shapeMapKey) UnmarshalText(b []byte) error { k.Name = string(b[len("key/"):]); return nil }

// shapeGrade is a byte that is written as a text.
type shapeGrade uint8

func (g shapeGrade) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "grade number %03d", uint8(g)), nil
}
func (g *shapeGrade) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "grade number %d", (*uint8)(g))
	return err
}

// secretShapes returns a value of every shape, all with new secrets.
func secretShapes(rng *rand.Rand) []secretShape {
	text := func() string { return secretText(rng) }
	number := func() int64 { return 1e12 + rng.Int64N(8e17) }
	data := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	listed := func(b []byte) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(b), " ", ","), "[]") }
	a, b, c, d := text(), text(), text(), text()
	n, m := number(), number()
	N, M := strconv.FormatInt(n, 10), strconv.FormatInt(m, 10)
	long, short := data(32+rng.IntN(200)), data(8)
	key32, digest := [32]byte(data(32)), shapeDigest(data(20))
	pa := &a
	private := ed25519.NewKeyFromSeed(data(32))
	raw, _ := json.Marshal(map[string]any{a: []any{b, map[string]any{c: n}}})
	blob := base64.StdEncoding.EncodeToString(long)
	address := netip.AddrFrom16([16]byte(data(16)))
	when := time.Unix(rng.Int64N(4e9), rng.Int64N(1e9)).UTC()
	letters := make([]shapeLetter, len(long))
	for i, x := range long {
		letters[i] = shapeLetter(x)
	}
	bigNumber := new(big.Int).Mul(big.NewInt(n), big.NewInt(m))
	fraction := float64(rng.IntN(1e6)) + 0.123456789 + float64(rng.IntN(1e6))/1e6
	return []secretShape{
		shapeOf("string", a, a),
		shapeOf("named string", shapeToken(a), a),
		shapeOf("pointer", pa, a),
		shapeOf("pointer to pointer", &pa, a),
		shapeOf("named pointer", shapePointer(pa), a),
		shapeOf("strings", []string{a, b}, a, b),
		shapeOf("array of strings", [2]string{a, b}, a, b),
		shapeOf("lists of lists", [][]string{{a}, {b, c}}, a, b, c),
		shapeOf("map", map[string]string{a: b}, a, b),
		shapeOf("named keys", map[shapeToken]shapeToken{shapeToken(a): shapeToken(b)}, a, b),
		shapeOf("map of maps", map[string]map[string]string{a: {b: c}}, a, b, c),
		shapeOf("map of lists", map[string][]string{a: {b, c}}, a, b, c),
		shapeOf("list of maps", []map[string]int64{{a: n}}, a).with(N),
		shapeOf("keys that are numbers", map[int64]string{n: a}, a).with(N),
		shapeOf("keys with methods", map[shapeMapKey]int{{a}: 1}, a, "key/"+a),
		shapeOf("struct", shapeTagged{Key: long, ByName: map[string]string{a: b}, Retries: n, shapeEmbed: shapeEmbed{c}},
			string(long), a, b, c).with(N),
		shapeOf("pointers to structs", []*shapeTagged{{Key: short, ByName: map[string]string{a: b}}}, string(short), a, b),
		shapeOf("struct with a map of structs", struct{ M map[string]shapeEmbed }{map[string]shapeEmbed{a: {b}}}, a, b),
		shapeOf("bytes", long, string(long)),
		shapeOf("named bytes", shapeBytes(long), string(long)),
		shapeOf("bytes of a named type", letters, string(long)),
		shapeOf("bytes with methods", []shapeGrade{shapeGrade(long[0]), 7}, fmt.Sprintf("grade number %03d", long[0]), "grade number 007"),
		shapeOf("lists of bytes", [][]byte{long, short}, string(long), string(short)),
		shapeOf("map of bytes", map[string][]byte{a: long}, a, string(long)),
		shapeOf("key", private, string(private)),
		shapeOf("array of bytes", key32, string(key32[:]), listed(key32[:])),
		shapeOf("pointer to an array of bytes", &key32, string(key32[:])),
		shapeOf("named array of bytes", digest, string(digest[:])),
		shapeOf("arrays of bytes", map[string][32]byte{a: key32}, a, string(key32[:])),
		shapeOf[any]("any text", a, a),
		shapeOf[any]("any list", []any{a, []any{b, n}}, a, b).with(N),
		shapeOf[any]("any object", map[string]any{a: map[string]any{b: []any{map[string]any{c: d}}}}, a, b, c, d),
		shapeOf[any]("any struct", shapeTagged{Key: long, ByName: map[string]string{a: b}, Retries: n}, string(long), a, b).with(N),
		shapeOf[any]("any bytes", long, string(long), blob),
		shapeOf[any]("any array of bytes", key32, string(key32[:])),
		shapeOf[any]("any number", n).with(N),
		shapeOf("struct with any", struct{ V any }{map[string]any{a: long}}, a, string(long)),
		shapeOf("map of any", map[string]any{a: map[string]any{b: key32}}, a, b, string(key32[:])),
		shapeOf("raw message", json.RawMessage(raw), a, b, c).with(N),
		shapeOf("JSON", state.JSON(raw), a, b, c).with(N),
		shapeOf("JSON in a struct", struct{ V []state.JSON }{[]state.JSON{state.JSON(raw)}}, a, b, c).with(N),
		shapeOf("JSON with bytes", state.JSONText(blob), blob, string(long)),
		shapeOf("text of its own", shapeOpaque{a}, a, "opaque:"+a),
		shapeOf("JSON of its own", shapeEnvelope{long, map[string]string{a: b}, pa}, string(long), a, b, "v1."+a),
		shapeOf("JSON of its own in a map", map[string]*shapeEnvelope{b: {short, nil, pa}}, string(short), a, b),
		shapeOf("address", address, address.String()),
		shapeOf("time", when, when.Format(time.RFC3339Nano)),
		shapeOf("times", []state.Time{state.TimeOf(when)}, when.Format(time.RFC3339Nano)),
		shapeOf("number", n).with(N),
		shapeOf("unsigned", uint64(n)).with(N),
		shapeOf("named number", shapeNumber(n)).with(N),
		shapeOf("numbers", []int64{n, m}).with(N, M),
		shapeOf("array of numbers", [2]int64{n, m}).with(N, M),
		shapeOf("float", fraction).with(fmt.Sprint(fraction)),
		shapeOf("short float", float32(fraction)).with(fmt.Sprint(float32(fraction))),
		shapeOf("whole float", float64(n/1e6*1e6)).with(fmt.Sprint(float64(n/1e6*1e6)), strconv.FormatInt(n/1e6*1e6, 10)),
		shapeOf("small float", 1/float64(n)).with(fmt.Sprint(1/float64(n)), strconv.FormatFloat(1/float64(n), 'f', -1, 64)),
		shapeOf("text of a number", json.Number(N+".50")).with(N + ".50"),
		shapeOf("big number", bigNumber).with(bigNumber.String()),
		shapeOf("message", []state.Message{state.UserText(a)}, a),
	}
}

// secretText returns a text that occurs in no other text by accident.
func secretText(rng *rand.Rand) string {
	letters := []rune("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789")
	if rng.IntN(3) == 0 {
		letters = append(letters, []rune("\"\\\n\t<>&;%+= €日🔑'/?{}[],:")...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x", rng.Uint32()|1<<31)
	for range 8 + rng.IntN(60) {
		b.WriteRune(letters[rng.IntN(len(letters))])
	}
	return b.String() + "z"
}

// spellings returns the encodings of a text that Redact promises to find.
func spellings(text string) map[string]string {
	plain, _ := json.Marshal(text)
	std, lower := base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text))
	forms := map[string]string{
		"base64": std, "raw base64": base64.RawStdEncoding.EncodeToString([]byte(text)),
		"URL base64": base64.URLEncoding.EncodeToString([]byte(text)), "raw URL base64": base64.RawURLEncoding.EncodeToString([]byte(text)),
		"hex": lower, "HEX": strings.ToUpper(lower),
		"query": url.QueryEscape(text), "path": url.PathEscape(text),
		"raw":              text,
		"in larger base64": base64.StdEncoding.EncodeToString([]byte("user:" + text)),
	}
	if strings.ToValidUTF8(text, "") == text { // JSON replaces other bytes
		forms["JSON"] = string(plain[1 : len(plain)-1])
	}
	return forms
}

// TestSecretOfEveryShapeIsRedacted looks for every part of values of every shape
// in every encoding.
func TestSecretOfEveryShapeIsRedacted(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		shapes := secretShapes(rng)
		shape := shapes[rng.IntN(len(shapes))]
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st), shape.name)
		if rng.IntN(3) == 0 { // and as an import has it
			data, err := st.Export()
			require.NoError(t, err, shape.name)
			st, err = state.Import(state.MustSchema(shape.part), data)
			require.NoError(t, err, shape.name)
		}
		for _, text := range shape.texts {
			for form, spelled := range spellings(text) {
				requireRedacted(t, st, spelled, fmt.Sprintf("program %d: %s, %s of %q", i, shape.name, form, text))
			}
		}
		for _, number := range shape.numbers {
			requireRedacted(t, st, number, fmt.Sprintf("program %d: %s, number %s", i, shape.name, number))
			data := st.Redact(`{"n":` + number + `,"list":[` + number + `]}`)
			require.NotContains(t, data, number, shape.name)
			require.True(t, json.Valid([]byte(data)), "%s: %s", shape.name, data)
		}
	}
}

func requireRedacted(t *testing.T, st *state.State, spelled, where string) {
	t.Helper()
	got := st.Redact("before " + spelled + " after")
	require.NotContains(t, got, spelled, where)
	require.Contains(t, got, "[SECRET]", where)
	require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, " after"), "%s: %q", where, got)
}

// Bytes in an array used to be 32 secrets, which were masked wherever a number
// of up to 255 stood.
func TestSecretBytesAreNotSecretNumbers(t *testing.T) {
	key := [32]byte{}
	for i := range key {
		key[i] = byte(i * 7)
	}
	const text = "we have 7 items and 14 boxes"
	for _, shape := range []secretShape{
		shapeOf("array", key), shapeOf[any]("any", key), shapeOf("struct", struct{ K [32]byte }{key}), shapeOf("slice", key[:]),
	} {
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st))
		require.Equal(t, text, st.Redact(text), shape.name)
	}
}

// The words that a type uses to write a struct are no secrets, and neither are
// the numbers that it is made of.
func TestSecretsAreNotTheNamesOfMembers(t *testing.T) {
	text := "text"
	for _, shape := range []secretShape{
		shapeOf("struct", shapeTagged{Retries: 123456}),
		shapeOf("methods", shapeEnvelope{[]byte("123456"), nil, &text}),
		shapeOf("address", netip.MustParseAddr("10.1.2.3")),
		shapeOf("times", time.Date(2020, 1, 2, 3, 4, 5, 0, time.Local)),
	} {
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st))
		const plain = "wrapped_key names Inner 0 1 281470681743360 Local UTC"
		require.Equal(t, plain, st.Redact(plain), shape.name)
	}
}

// shapeMasked masks itself, so that an export would not hold it.
type shapeMasked string

func (shapeMasked) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }
func (m *shapeMasked) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, (*string)(m))
}

// shapeSly masks itself unless it is empty.
type shapeSly struct{ text string }

func (s shapeSly) MarshalText() ([]byte, error) { return []byte(s.text[:min(len(s.text), 2)]), nil }
func (s *shapeSly) UnmarshalText(b []byte) error {
	s.text = string(b)
	return nil
}

func TestSecretThatItsJSONDoesNotGiveBackIsRefused(t *testing.T) {
	_, err := state.NewSchema(&state.Field[shapeMasked]{Name: "f", Secret: true})
	require.EqualError(t, err, `state: field "f": cannot be Secret: the JSON of state_test.shapeMasked does not give the value back`)
	_, err = state.NewSchema(&state.Field[struct{ V shapeMasked }]{Name: "f", Secret: true})
	require.ErrorContains(t, err, "cannot be Secret")
	_, err = state.NewSchema(&state.Field[shapeMasked]{Name: "f"})
	require.NoError(t, err, "what is no secret may mask itself")

	const text = "sk-live-99887766"
	f := &state.Field[shapeSly]{Name: "f", Secret: true}
	l := &state.Field[[]shapeSly]{Name: "l", Secret: true}
	m := &state.Field[map[string]any]{Name: "m"}
	own := &state.Field[[]shapeSly]{Name: "own", Secret: true,
		Handler: state.NewHandler("own", func(_ []shapeSly, _ bool, u []shapeSly) ([]shapeSly, error) {
			return []shapeSly{{text}}, nil
		})}
	st := state.New(state.MustSchema(f, l, m, own))
	require.NoError(t, f.Set(st, shapeSly{"sk"}))
	for name, err := range map[string]error{
		"set":     f.Set(st, shapeSly{text}),
		"replace": f.Replace(st, shapeSly{text}),
		"update":  f.Update(st, func(shapeSly) (shapeSly, error) { return shapeSly{text}, nil }),
		"by name": st.KV().Set("f", shapeSly{text}),
		"patch":   st.Patch(map[string]any{"f": shapeSly{text}}),
		"append":  l.Set(st, []shapeSly{{"a"}, {text}}),
		"handler": own.Set(st, []shapeSly{{"a"}}),
	} {
		require.ErrorIs(t, err, state.ErrWrongType, name)
		require.ErrorContains(t, err, "want a secret that its JSON gives back", name)
		require.NotContains(t, err.Error(), text, name)
	}
	require.Equal(t, shapeSly{"sk"}, f.GetOr(st, shapeSly{}))
	require.NoError(t, m.Set(st, map[string]any{"k": shapeSly{text}}))
}

// FuzzSecrets looks for a text in values that hold it at different places.
func FuzzSecrets(f *testing.F) {
	for _, text := range []string{"sk-live-99887766", "correct horse battery", "\"quoted\"\\", "日本語のかぎ", "a\nb\nc\nd", "12345678", "c2stbGl2ZQ=="} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, shape uint8) {
		if len(text) < 8 || strings.ToValidUTF8(text, "") != text || strings.Contains("before  after [SECRET]", text) {
			return
		}
		raw, err := json.Marshal(map[string]any{"k": []string{text}})
		require.NoError(t, err)
		shapes := []secretShape{
			shapeOf("string", text), shapeOf("key", map[string]map[string]int{"k": {text: 1}}), shapeOf("bytes", shapeBytes(text)),
			shapeOf[any]("any", []any{map[string]any{text: nil}}), shapeOf("JSON", state.JSON(raw)), shapeOf("methods", shapeOpaque{text}),
			shapeOf[any]("any bytes", []byte(text)),
		}
		s := shapes[int(shape)%len(shapes)]
		st := state.New(state.MustSchema(s.part))
		if err := s.replace(st); err != nil {
			require.NotContains(t, err.Error(), text)
			return
		}
		for _, form := range slices.Sorted(maps.Keys(spellings(text))) {
			spelled := spellings(text)[form]
			require.NotContains(t, st.Redact("before "+spelled+" after"), spelled, "%s, %s of %q", s.name, form, text)
		}
	})
}

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

package state_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		names := slices.Sorted(maps.Keys(handles))
		name := names[rng.IntN(len(names))]
		for where, text := range differences(handles[name], other) {
			requireNoSecret(t, name+": "+where, text, forms)
		}
	}
}

// A comparer that is let into everything finds no secret either.
func TestSecretIsNotInTheDifferenceOfEverything(t *testing.T) {
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
		require.Equal(t, map[string]string{"key": s}, v.byName.Or(st, nil))
		require.Equal(t, []byte(s), v.bytes.Or(st, nil))
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
	other := func(t *testing.T, field state.Part) *state.Schema {
		schema, err := state.NewSchema(field)
		require.NoError(t, err)
		return schema
	}
	for name, err := range map[string]error{
		"cut": func() error {
			_, err := state.Import(v.schema, []byte(data[:strings.Index(data, s)+len(s)]))
			return err
		}(),
		"number": func() error {
			_, err := state.Import(other(t, &state.Field[int]{Name: "text", Secret: true}), []byte(data))
			return err
		}(),
		"time": func() error {
			_, err := state.Import(other(t, &state.Field[time.Time]{Name: "text", Secret: true}), []byte(data))
			return err
		}(),
		"address": func() error {
			_, err := state.Import(other(t, &state.Field[netip.Addr]{Name: "text", Secret: true}), []byte(data))
			return err
		}(),
		"small": func() error {
			_, err := state.Import(other(t, &state.Field[string]{Name: "text", Secret: true, MaxBytes: 2}), []byte(data))
			return err
		}(),
		"control": func() error {
			_, err := state.Import(v.schema, []byte(strings.Replace(data, s, s+"\x01", 1)))
			return err
		}(),
		"key": func() error {
			_, err := state.Import(v.schema, []byte(`{"format":1,"fields":[{"name":"by_name","value":{"`+s+`":"a","`+s+`":"b"}}]}`))
			return err
		}(),
		"format": func() error { _, err := state.Import(v.schema, []byte(`"`+s+`"`)); return err }(),
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
	require.NotEqual(t, "the first secret", v.text.Or(past, ""))
	require.NotEqual(t, []string{"the first of a list"}, v.list.Or(past, nil))
	_, err = v.text.Delete(st)
	require.NoError(t, err)
	past, err = st.At(version)
	require.NoError(t, err)
	require.NotContains(t, v.text.Or(past, ""), "secret", "deleted is deleted")
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

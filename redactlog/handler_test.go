package redactlog_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/redactlog"
)

func secretField(name string) *state.Field[string] {
	return &state.Field[string]{Name: name, Secret: true}
}

func TestIsAHandler(t *testing.T) {
	key := secretField("key")
	st := state.New(state.MustSchema(key))
	for _, secret := range []string{"", "hunter22", "a=b"} { // none, not in the records
		if secret != "" {
			require.NoError(t, key.Set(st, secret))
		}
		var out bytes.Buffer
		slogtest.Run(t, func(*testing.T) slog.Handler {
			out.Reset()
			return redactlog.New(slog.NewJSONHandler(&out, nil), st)
		}, func(t *testing.T) map[string]any {
			line := map[string]any{}
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			return line
		})
	}
	// A value with methods makes all records new ones.
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return redactlog.New(slog.NewJSONHandler(&out, nil), st).WithAttrs([]slog.Attr{slog.Any("any", struct{}{})})
	}, func(t *testing.T) map[string]any {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		return line
	})
}

// The kinds of values that a log may have.
type (
	logStringer struct{ text string }
	logText     struct{ text string }
	logValuer   struct{ text string }
	logJSON     struct{ text string }
	logPanic    struct{ text string }
	logStruct   struct {
		Name   string
		hidden string
	}
)

func (s logStringer) String() string           { return "S:" + s.text }
func (s logText) MarshalText() ([]byte, error) { return []byte("T:" + s.text), nil }
func (s logValuer) LogValue() slog.Value       { return slog.StringValue("V:" + s.text) }
func (s logJSON) MarshalJSON() ([]byte, error) { return json.Marshal("J:" + s.text) }
func (s logPanic) Error() string               { panic(s.text) }

func TestMasksEveryValue(t *testing.T) {
	const secret = `sk-"live"-99887766`
	key, pin := secretField("key"), &state.Field[int]{Name: "pin", Secret: true}
	st := state.New(state.MustSchema(key, pin))
	require.NoError(t, key.Set(st, secret))
	require.NoError(t, pin.Set(st, 271828182))
	cycle := map[string]any{"key": secret}
	cycle["self"] = cycle
	values := map[string]any{
		"string": secret, "bytes": []byte("x" + secret), "error": errors.New("bad " + secret),
		"wrapped": fmt.Errorf("very: %w", errors.New(secret)), "stringer": logStringer{secret}, "pointer": &logStringer{secret},
		"text": logText{secret}, "valuer": logValuer{secret}, "JSON": logJSON{secret}, "struct": logStruct{secret, "x"},
		"hidden": logStruct{"x", secret}, "map": map[string]any{secret: []string{secret}}, "list": []any{1, secret},
		"number": 271828182, "unsigned": uint64(271828182), "float": 271828182.0, "duration": time.Duration(271828182),
		"group":  slog.GroupValue(slog.Any("inner", slog.GroupValue(slog.String(secret, secret)))),
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "raw": json.RawMessage(`{"pin":271828182}`),
		"panic": logPanic{secret}, "nil": (*logPanic)(nil), "cycle": cycle, "nested valuer": slog.GroupValue(slog.Any("v", logValuer{secret})),
		"url": "https://host/?key=sk-%22live%22-99887766",
	}
	forms := []string{secret, `sk-\"live\"-99887766`, `sk-\\\"live\\\"-99887766`, "99887766", "271828182", base64.StdEncoding.EncodeToString([]byte(secret))[2:20]}
	for name, value := range values {
		for place, log := range map[string]func(l *slog.Logger){
			"attr":    func(l *slog.Logger) { l.Info("text", "a", value) },
			"with":    func(l *slog.Logger) { l.With("a", value).Info("text") },
			"group":   func(l *slog.Logger) { l.WithGroup("g").With("a", value).WithGroup("h").Info("text", "b", 1) },
			"key":     func(l *slog.Logger) { l.Info("text", fmt.Sprint(secret), 1) },
			"name":    func(l *slog.Logger) { l.WithGroup(secret).Info("text", "b", value) },
			"message": func(l *slog.Logger) { l.Info("text " + secret) },
		} {
			for format, handler := range map[string]func(out *bytes.Buffer) slog.Handler{
				"text": func(out *bytes.Buffer) slog.Handler { return slog.NewTextHandler(out, nil) },
				"JSON": func(out *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(out, nil) },
			} {
				if name == "cycle" && place != "attr" {
					continue // as without the handler, which gives next all attributes
				}
				var out bytes.Buffer
				log(slog.New(redactlog.New(handler(&out), st)))
				for _, form := range forms {
					require.NotContains(t, out.String(), form, "%s as %s in %s", name, place, format)
				}
				if format == "JSON" {
					require.True(t, json.Valid(out.Bytes()), "%s as %s: %s", name, place, &out)
				}
			}
		}
	}
}

func TestKeepsOtherValues(t *testing.T) {
	key := secretField("key")
	st := state.New(state.MustSchema(key))
	require.NoError(t, key.Set(st, "hunter22"))
	got := map[string]any{}
	next := attrHandler{got: got}
	address := netip.MustParseAddr("10.0.0.1")
	plain := logStruct{"a", "b"}
	err := errors.New("plain")
	slog.New(redactlog.New(next, st)).Info("hunter22", "n", 3, "err", err, "addr", address, "struct", plain, "valuer", logValuer{"x"}, "s", "hunter22")
	require.Equal(t, map[string]any{"n": int64(3), "err": err, "addr": address, "struct": plain, "valuer": "V:x", "s": "[SECRET]"}, got)
}

// attrHandler keeps the values that it gets.
type attrHandler struct {
	slog.Handler
	got map[string]any
}

func (attrHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h attrHandler) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		h.got[a.Key] = a.Value.Any()
		return true
	})
	return nil
}

// A log may write a number with or without an exponent.
func TestMasksNumbersInEachFormat(t *testing.T) {
	for _, pin := range []float64{0, 0.00001, 0.0001, 119.9, 999999, 999999.5, 1e6, 1234567, 1e20, 1e21, 1e22, -1e6, math.MaxFloat64} {
		for _, format := range []byte{'g', 'f'} {
			key := secretField("key")
			st := state.New(state.MustSchema(key))
			require.NoError(t, key.Set(st, strconv.FormatFloat(pin, format, -1, 64)))
			var out bytes.Buffer
			slog.New(redactlog.New(slog.NewTextHandler(&out, nil), st)).Info("paid", "amount", pin)
			require.Contains(t, out.String(), "amount=[SECRET]", "%v as %c", pin, format)
		}
	}
}

func TestLooksUpForEachRecord(t *testing.T) {
	a := &state.Field[string]{Name: "a", Secret: true, Owner: "ann"}
	st := state.New(state.MustSchema(state.Team{"ann": nil, "ben": nil}, a))
	var out bytes.Buffer
	next := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == "time" || a.Key == "level") {
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(redactlog.New(next)).With("old", "secret-1", "new", "secret-2")
	ctx := state.NewContext(context.Background(), st.As("ben")) // who may not read it
	line := func(ctx context.Context) string {
		out.Reset()
		log.InfoContext(ctx, "now")
		return strings.TrimSpace(out.String())
	}
	require.Equal(t, "msg=now old=secret-1 new=secret-2", line(ctx))
	require.NoError(t, a.Set(st, "secret-1"))
	require.Equal(t, "msg=now old=[SECRET] new=secret-2", line(ctx))
	require.Equal(t, "msg=now old=secret-1 new=secret-2", line(context.Background()), "no State in the context")
	require.NoError(t, a.Set(st, "secret-2"))
	require.Equal(t, "msg=now old=secret-1 new=[SECRET]", line(ctx))
	require.Equal(t, "msg=now old=secret-1 new=secret-2", line(context.Background()), "no State in the context, and none given")

	other := state.New(state.MustSchema(secretField("key")))
	require.NoError(t, other.KV().Set("key", "secret-1"))
	log = slog.New(redactlog.New(next, other, st, other)).With("old", "secret-1", "new", "secret-2")
	require.Equal(t, "msg=now old=[SECRET] new=[SECRET]", line(ctx))
	require.Equal(t, "msg=now old=[SECRET] new=[SECRET]", line(context.Background()))
}

func TestConcurrentUse(t *testing.T) {
	key := secretField("key")
	st := state.New(state.MustSchema(key))
	var mu sync.Mutex
	var out bytes.Buffer
	log := slog.New(redactlog.New(slog.NewJSONHandler(lockedWriter{&mu, &out}, nil), st)).With("with", "secret-7")
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 100 {
				if g == 0 {
					_ = key.Set(st, fmt.Sprintf("secret-%d", i%10))
				}
				log.Info("text", "i", i, "err", errors.New("secret-3"))
			}
		})
	}
	all.Wait()
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

type lockedWriter struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

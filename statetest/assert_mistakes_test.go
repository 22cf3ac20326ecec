package statetest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/statetest"
)

const (
	cardNumber = "4242-4242-4242"
	apiKey     = "sk-live-9f8e7d6c5b4a3210"
	password   = "pass<word>1"
)

// till is a state with secrets, and with a field that search may not read.
type till struct {
	card    *state.Field[string]
	keys    *state.Field[map[string]string]
	note    *state.Field[string]
	refund  *state.Field[float64]
	history *state.Field[[]string]
	st      *state.State
}

func newTill(t *testing.T) *till {
	t.Helper()
	d := &till{
		card:    &state.Field[string]{Name: "card", Owner: "billing", Read: state.Private, Secret: true},
		keys:    &state.Field[map[string]string]{Name: "keys", Owner: "billing", Read: state.Private, Secret: true},
		note:    &state.Field[string]{Name: "note", Owner: "billing", Read: state.Private},
		refund:  &state.Field[float64]{Name: "refund", Owner: "billing", Read: state.Public},
		history: &state.Field[[]string]{Name: "steps", Read: state.Public},
	}
	d.st = state.New(state.MustSchema(state.Team{"desk": {"billing", "search"}}, d.card, d.keys, d.note, d.refund, d.history))
	require.NoError(t, d.card.Set(d.st, cardNumber))
	require.NoError(t, d.keys.Set(d.st, map[string]string{"primary-" + cardNumber[:4] + "-key": apiKey, "other": password}))
	require.NoError(t, d.note.Set(d.st, "suspected of fraud"))
	require.NoError(t, d.refund.Set(d.st.As("billing").WithCause("call_1"), 129.9))
	return d
}

// leak is a program that says a text to search; with the mistake, one that
// tells something.
func leak(row int, name string, sound string, said func() string, words ...string) mistakes.Program {
	return mistakes.Program{Row: row, Part: "assert", Name: name, Words: append(words, "again: go test -run '^TestBroken$/"),
		Run: func(t *testing.T, mistake bool) {
			text := sound
			if mistake {
				text = said()
			}
			statetest.NoLeak(t, newTill(t).st, "search", "nothing is in this", text)
		}}
}

func compressed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func inJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func lines(text string, n int) string {
	var b strings.Builder
	for i := 0; i < len(text); i += n {
		b.WriteString(text[i:min(i+n, len(text))] + "\r\n")
	}
	return b.String()
}

// differs is a program that is sound as long as the assertion sees the same.
func differs(row int, name string, run func(t *testing.T, d *till, mistake bool), words ...string) mistakes.Program {
	return mistakes.Program{Row: row, Part: "assert", Name: name, Words: words,
		Run: func(t *testing.T, mistake bool) { run(t, newTill(t), mistake) }}
}

func init() {
	type credentials struct{ Card, Key string }
	programs = append(programs,
		leak(10, "a secret printed", "charged [SECRET]",
			func() string { return fmt.Sprintf("charged %v", credentials{Card: cardNumber}) },
			"text 2 tells card, a secret, as it is, by byte 23"),
		leak(11, "base64 in a URL", "https://pay.example/?auth=none",
			func() string {
				return "https://pay.example/?auth=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("u:"+cardNumber)))
			}, "text 2 tells card, a secret, as base64, by byte "),
		leak(12, "JSON in JSON", inJSON(map[string]string{"arguments": inJSON("none")}),
			func() string {
				return inJSON(map[string]string{"arguments": inJSON(map[string]string{"key": password})})
			}, "text 2 tells keys, a secret, as escaped text, by byte "),
		leak(13, "hex in capitals", "DEADBEEF",
			func() string { return fmt.Sprintf("trace=%X;", cardNumber) },
			"text 2 tells card, a secret, as hex, by byte 34"),
		leak(14, "wrapped base64", lines(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("nothing ", 20))), 10),
			func() string {
				return lines(base64.StdEncoding.EncodeToString([]byte("some words before "+apiKey+" and after")), 10)
			}, "text 2 tells keys, a secret, as base64 in several parts"),
		leak(15, "gzip", `{"body":"`+compressed("nothing to see")+`"}`,
			func() string { return `{"body":"` + compressed("the card is "+cardNumber) + `","amount":1}` },
			"text 2 tells card, a secret, as compressed text in base64, by byte "),
		leak(16, "map key", "primary key",
			func() string { return "uses primary-4242-key now" }, "text 2 tells keys, a secret, as it is, by byte 21"),
		leak(17, "first bytes", "sk-live-…",
			func() string { return "uses " + apiKey[:12] + "…" }, "text 2 tells 12 bytes of keys, a secret, as it is, by byte 17"),
		leak(18, "hidden field in another prompt", "The customer waits.",
			func() string { return "The customer is Suspected of Fraud." },
			"text 2 tells note, which search may not read, as it is, by byte 34"),
		differs(19, "a secret in a diff", func(t *testing.T, d *till, mistake bool) {
			want := []string{"charged nothing"}
			got := []string{"charged nothing"}
			if mistake {
				want, got = []string{"charged " + apiKey}, []string{"charged " + apiKey[:20] + "x to " + cardNumber}
			}
			statetest.Equal(t, map[string]any{"log": want, "st": d.st}, map[string]any{"log": got, "st": d.st})
		}, "not equal (want -, got +)", "[SECRET 1]", "[SECRET 2]", "again: go test -run '^TestBroken$/"),

		leak(0, "shifted base64", "a 4242-4242-41", func() string { return "x" + base64.StdEncoding.EncodeToString([]byte("<"+cardNumber+">")) },
			"text 2 tells card"),
		leak(0, "UTF-16", "nothing", func() string { return string(wide(cardNumber)) }, "text 2 tells card, a secret, as it is"),
		leak(0, "escaped three times", "nothing", func() string {
			return url.QueryEscape(inJSON(inJSON(map[string]string{"k": password})))
		}, "text 2 tells keys, a secret, as escaped text"),
		leak(0, "spread over a list", `["a","b"]`, func() string { return `["4242-","4242-","4242"]` },
			"text 2 tells card, a secret, as several parts"),
		differs(0, "nothing to look for", func(t *testing.T, d *till, mistake bool) {
			if mistake {
				_, err := d.card.Delete(d.st)
				require.NoError(t, err)
				_, err = d.keys.Delete(d.st)
				require.NoError(t, err)
			}
			statetest.NoLeak(t, d.st, "", "text")
		}, "NoLeak has no value to look for: no Secret field is set"),
		differs(0, "short secret", func(t *testing.T, d *till, mistake bool) {
			require.NoError(t, d.card.Replace(d.st, "pin7"))
			text := "the pin77 is none"
			if mistake {
				text = "the pin7 is it"
			}
			statetest.NoLeak(t, d.st, "", text)
		}, "text 1 tells card, a secret, as it is, by byte 8"),
		differs(0, "no text", func(t *testing.T, d *till, mistake bool) {
			text := "text"
			if mistake {
				text = ""
			}
			statetest.NoLeak(t, d.st, "search", text)
		}, "NoLeak has no text to search"),

		differs(0, "other journal", func(t *testing.T, d *till, mistake bool) {
			if mistake {
				require.NoError(t, d.refund.Set(d.st, 130))
			}
			statetest.Equal(t, []string{"billing set refund call_1"}, statetest.Journal(d.st, 0, "refund"))
		}, "billing set refund call_1", "host set refund"),
		differs(0, "other secrets in states", func(t *testing.T, d *till, mistake bool) {
			other := newTill(t)
			if mistake {
				require.NoError(t, other.card.Set(other.st, cardNumber[:13]+"3"))
				require.NoError(t, state.Messages.Set(other.st, []state.Message{state.UserText("My card is " + cardNumber)}))
			}
			statetest.Equal(t, d.st, other.st)
		}, `"card"`, "[SECRET 1]", "[SECRET 2]", `My card is [SECRET`),
		differs(0, "golden file", func(t *testing.T, d *till, mistake bool) {
			text := statetest.Transcript([]state.Message{state.UserText("The keyboard is broken.")})
			if mistake {
				text = "user: nothing\n"
				statetest.Golden(t, "missing.txt", text)
			}
			statetest.Golden(t, "transcript.txt", strings.ReplaceAll(text, "\n", "\r\n"))
		}, "testdata/missing.txt is missing, or cannot be read", "to write it: STATETEST_UPDATE=1 go test -run '^TestBroken$/", "testdata/transcript.txt differs"),
		differs(0, "another call", func(t *testing.T, d *till, mistake bool) {
			call := state.ToolCall{ID: "1", Name: "look", Input: `{"order":"W1"}`}
			said := state.ToolCalls(call)
			if mistake {
				call.Input = `{"order":"W2"}`
			}
			require.NoError(t, d.st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}))
			recorded := state.Messages.GetOr(d.st, nil)
			statetest.Equal(t, []state.Message{said}, recorded)
			statetest.Equal(t, said.Calls(), d.st.History().Pending())
			statetest.Golden(t, "call.txt", string(recorded[0].Raw())+"\n")
		}, `"W1"`, `"W2"`, "testdata/call.txt differs"),
		differs(0, "golden outside", func(t *testing.T, d *till, mistake bool) {
			name := "transcript.txt"
			if mistake {
				name = "../transcript.txt"
			}
			statetest.Golden(t, name, "user: \"The keyboard is broken.\"\n")
		}, "is no name of a file below testdata"),
	)
}

func wide(text string) []byte {
	var b []byte
	for _, c := range []byte(text) {
		b = append(b, c, 0)
	}
	return b
}

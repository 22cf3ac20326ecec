package provider_test

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/agentstate/state/transcript"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

var turnsOfExample = []turn{
	{By: "system", Says: "Be brief."},
	{By: "human", Says: "What is 2+3?", Mood: "curious", Shows: []string{"https://example.org/a.png", "data:image/png;base64,aGk="}},
	{By: "bot", Says: "I add.", Uses: []use{{"u1", "add", `{"a": 2, "b": 3}`}, {"u2", "now", ""}}},
	{By: "tool", Answers: "u1", Says: "5"},
	{By: "tool", Answers: "u2", Says: ""},
	{By: "bot", Uses: []use{{"u3", "add", `{"a":`}}},
	{By: "tool", Answers: "u3", Says: `{"error":"bad"}`, Mood: "cross"},
	{By: "bot", Says: "5 <b>"},
}

func TestMessageCodecOfExample(t *testing.T) {
	providertest.RunMessages(t, provider.NewMessageFormat("turns", turnCodec), turnsOfExample)
}

// brokenTurns are codecs of turns, each with a fault, and the law that it breaks.
func brokenTurns() map[string]brokenTurn {
	decode := func(law string, change func(t turn, e *provider.Entry)) brokenTurn {
		c := turnCodec
		c.Decode = func(t turn) (provider.Entry, error) {
			e, err := decodeTurn(t)
			change(t, &e)
			return e, err
		}
		return brokenTurn{law, c}
	}
	encode := func(law string, change func(e *provider.Entry, t *turn) []turn) brokenTurn {
		c := turnCodec
		c.Encode = func(e provider.Entry) ([]turn, error) {
			made, err := encodeTurn(e)
			return change(&e, &made[0]), err
		}
		return brokenTurn{law, c}
	}
	broken := map[string]brokenTurn{
		"drops what is left": decode("RoundTrip", func(_ turn, e *provider.Entry) { e.Extra = provider.Extra{} }),
		"takes arguments for JSON": decode("RoundTrip", func(t turn, e *provider.Entry) {
			for i, p := range e.Parts {
				if p.Kind == provider.PartCall {
					e.Parts[i].Input = state.JSON(t.Uses[len(t.Uses)-len(e.Parts)+i].With)
				}
			}
		}),
		"an empty text is no text": decode("RoundTrip", func(t turn, e *provider.Entry) {
			if t.By == "human" && t.Says == "" {
				e.Parts = append(e.Parts, provider.Part{Kind: provider.PartText, Text: "?"})
			}
		}),
		"panics": decode("Zero", func(t turn, _ *provider.Entry) {
			if t.By == "" {
				panic("by whom?")
			}
		}),
		"loses a role": encode("RoundTrip", func(_ *provider.Entry, t *turn) []turn {
			if t.By == "bot" {
				t.By = "human"
			}
			return []turn{*t}
		}),
		"says twice": encode("RoundTrip", func(_ *provider.Entry, t *turn) []turn { return []turn{*t, *t} }),
		"has no texts of bots": encode("Omissions", func(e *provider.Entry, t *turn) []turn {
			if e.Role == "assistant" && e.Extra.IsEmpty() && len(e.Parts) == 1 {
				t.Says = ""
			}
			return []turn{*t}
		}),
	}
	joins := turnCodec
	joins.OneResult = false
	broken["results in one entry"] = brokenTurn{"Omissions", joins}
	keeps := turnCodec
	keeps.Decode = func(t turn) (provider.Entry, error) {
		e, err := decodeTurn(t)
		e.Extra = provider.ExtraOf(t)
		return e, err
	}
	keeps.Encode = func(e provider.Entry) ([]turn, error) {
		if e.Extra.IsEmpty() {
			return encodeTurn(e)
		}
		var t turn
		return []turn{t}, e.Extra.Decode(&t)
	}
	broken["keeps what the entry says"] = brokenTurn{"Changes", keeps}
	named := turnCodec
	named.Names = true
	broken["does not read names"] = brokenTurn{"Omissions", named}
	files := turnCodec
	files.Carries = nil
	broken["claims to have files"] = brokenTurn{"Omissions", files}
	return broken
}

type brokenTurn struct {
	law   string
	codec provider.MessageCodec[turn]
}

const turnVariable = "STATE_TEST_BROKEN_TURN"

// Package providertest finds what a codec of messages does wrong.
func TestBrokenMessageCodecs(t *testing.T) {
	for name, broken := range brokenTurns() {
		t.Run(broken.law+"/"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestBrokenTurn$/^"+broken.law+"$")
			child.Env = append(os.Environ(), turnVariable+"="+name)
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the law holds:\n%s", output)
			require.Contains(t, string(output), "--- FAIL: TestBrokenTurn/"+broken.law)
			require.NotContains(t, string(output), "goroutine ", "it must fail and not panic")
		})
	}
}

// TestBrokenTurn runs in the child process.
func TestBrokenTurn(t *testing.T) {
	if name := os.Getenv(turnVariable); name != "" {
		broken, ok := brokenTurns()[name]
		require.True(t, ok)
		providertest.RunMessages(t, provider.NewMessageFormat("turns", broken.codec), turnsOfExample)
	}
}

// Media of a framework are read by every format that has their kind, also if the
// framework has the data in the URL.
func TestMediaOfMessageFormats(t *testing.T) {
	format := provider.NewMessageFormat("turns", turnCodec)
	msgs, err := format.Decode(turnsOfExample[1])
	require.NoError(t, err)
	for _, to := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		body, omitted, err := to.EncodeRequest(provider.Request{Messages: msgs})
		require.NoError(t, err)
		require.Equal(t, []provider.Omission{{Message: 0, What: "member mood"}}, omitted, to)
		require.Contains(t, string(body), "aGk=")
		require.Contains(t, string(body), "https://example.org/a.png")
		require.NotContains(t, string(body), "format:")
	}
}

// Errors say which message it is, and nothing of its content.
func TestErrorsOfMessageFormats(t *testing.T) {
	codec := turnCodec
	codec.Decode = func(t turn) (provider.Entry, error) {
		switch t.By {
		case "error":
			return provider.Entry{}, errors.New("bad turn")
		case "json":
			return provider.Entry{Parts: []provider.Part{{Kind: provider.PartText}, {JSON: `{"a":1,"a":2}`}}}, nil
		case "nothing":
			return provider.Entry{Parts: []provider.Part{{}}}, nil
		case "extra":
			return provider.Entry{Extra: provider.ExtraOf([]int{1})}, nil
		case "channel":
			return provider.Entry{Extra: provider.ExtraOf(make(chan int))}, nil
		}
		return decodeTurn(t)
	}
	format := provider.NewMessageFormat("turns", codec)
	for by, problem := range map[string]string{
		"error":   "$[1]: bad turn",
		"json":    "$[1].parts[1].a: the member occurs twice",
		"nothing": "$[1].parts[0]: want JSON, or a part that the codec can encode, got neither",
		"extra":   "$[1]: want an Extra that is an object, got array",
		"channel": "$[1]: json: unsupported type: chan int",
	} {
		_, err := format.Decode(turn{By: "human"}, turn{By: by})
		var wrong *provider.Error
		require.ErrorAs(t, err, &wrong, by)
		require.ErrorIs(t, err, state.ErrWrongType)
		require.Equal(t, "provider: turns: "+problem, err.Error())
	}
	pointers := provider.NewMessageFormat("pointers", provider.MessageCodec[*turn]{})
	_, err := pointers.Decode(nil)
	require.EqualError(t, err, "provider: pointers: $[0]: want a message, got none")
	_, _, err = format.Encode(state.UserText("a"), nil)
	require.EqualError(t, err, "provider: turns: $[1]: want a message, got none")
}

// What a message keeps may have been changed by hand. What it says is encoded.
func TestExtraThatTheCodecRefuses(t *testing.T) {
	format := provider.NewMessageFormat("turns", turnCodec)
	for _, text := range []string{
		`{"type":"text","role":"user","content":"Hello!","format:turns":{"entry":{"more":{"Mood":5}}}}`,
		`{"type":"text","role":"user","content":"Hello!","format:turns":{"entry":{"more":7}}}`,
		`{"type":"text","role":"user","content":"Hello!","format:turns":5}`,
	} {
		m, err := state.DecodeMessage([]byte(text))
		require.NoError(t, err)
		turns, _, err := format.Encode(state.AssistantText("a"), m)
		require.NoError(t, err, text)
		require.Equal(t, []turn{{By: "bot", Says: "a"}, {By: "human", Says: "Hello!"}}, turns, text)
	}
}

// The shape of a message of a framework is that of its messages.
func TestShapesOfMessageFormats(t *testing.T) {
	format := provider.NewMessageFormat("turns", turnCodec)
	calls := []state.ToolCall{{ID: "u1", Name: "add", Input: `{"a": 2, "b": 3}`}, {ID: "u2", Name: "now"}}
	for i, want := range []transcript.Shape{
		{Role: "system"}, {Role: "user"}, {Role: "assistant", Calls: calls}, {Role: provider.RoleTool, Answers: []state.ToolCall{{ID: "u1"}}},
	} {
		require.Empty(t, cmp.Diff(want, format.Shape(turnsOfExample[i]), cmpopts.IgnoreUnexported(transcript.Shape{})))
	}
	kept := append(slices.Clone(turnsOfExample[:2]), turnsOfExample[7])
	require.Equal(t, kept, format.KeepLast(3)(turnsOfExample))
	require.Equal(t, kept, format.KeepLast(3)(kept))
}

// What a message of a state says of itself is in its entry, and what the entry
// says besides its parts is in words that other formats know.
func TestMembersOfEntries(t *testing.T) {
	format := provider.NewMessageFormat("entries", provider.MessageCodec[provider.Entry]{
		Decode: func(e provider.Entry) (provider.Entry, error) { return e, nil },
		Encode: func(e provider.Entry) ([]provider.Entry, error) { return []provider.Entry{e}, nil },
		Names:  true, Reasons: true, FileNames: true,
	})
	want := []provider.Entry{
		{Role: "assistant", Name: "ann", Reasoning: "hm", StopReason: "tool", Parts: []provider.Part{
			{Kind: provider.PartThinking, Text: "so"}, {Kind: provider.PartText, Text: "I look."}, {Kind: provider.PartCall, ID: "c1", Name: "look"},
		}},
		{Role: provider.RoleTool, Parts: []provider.Part{
			{Kind: provider.PartResult, ID: "c1", Name: "look", IsError: true, Parts: []provider.Part{
				{Kind: provider.PartAudio, URL: "https://example.org/a.wav", MIME: "audio/wav", Name: "a"},
				{Kind: provider.PartFile, URL: "https://example.org/a.pdf", MIME: "application/pdf"},
				{Kind: provider.PartImage, URL: "https://example.org/a.png", Data: "aGk="},
				{Kind: provider.PartFile, Data: "aGk=", Name: "folder/a.txt"},
			}},
			{Kind: provider.PartResult, ID: "c2", Name: "now", Content: `["a"]`},
		}},
		{Role: "assistant", Parts: []provider.Part{{Kind: provider.PartCall, ID: "c1", Name: "look"}}},
		{Role: "assistant", Parts: []provider.Part{{Kind: provider.PartText, Text: "a"}, {Kind: provider.PartText, Text: "b"}}},
		{Role: "assistant", Parts: []provider.Part{{Kind: provider.PartCall, ID: "c3", Name: "look"}, {Kind: provider.PartResult, ID: "c3", Name: "look", Content: `"seen"`}}},
		{Role: "judge"},
	}
	msgs, err := format.Decode(slices.Clone(want)...)
	require.NoError(t, err)
	got, omitted, err := format.Encode(msgs...)
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.Empty(t, cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })))

	name, _ := msgs[0].Extra("name")
	reasoning, _ := msgs[0].Extra("reasoning_content")
	require.Equal(t, []state.JSON{`"ann"`, `"hm"`}, []state.JSON{name, reasoning})
	require.Equal(t, "tool", msgs[1].(state.ToolCallMessage).StopReason())

	// Of messages of others, what an entry has no place for is reported.
	foreign, err := state.DecodeMessage([]byte(`{"type":"text","role":"user","content":"a","name":["b"],"note":"c"}`))
	require.NoError(t, err)
	_, omitted, err = format.Encode(foreign)
	require.NoError(t, err)
	require.ElementsMatch(t, []provider.Omission{{Message: 0, What: "member name"}, {Message: 0, What: "member note"}}, omitted)
}

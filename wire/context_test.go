package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// say returns a function of a Transport that always says the same.
func say(text string) func(context.Context, *state.State) string {
	return func(context.Context, *state.State) string { return text }
}

// The context is the last that the model reads, unless it goes on with its own
// words. The provider accepts it there, and what stands in front of it are the
// bytes of the request without it.
func TestContextStandsBehindTheConversation(t *testing.T) {
	call := state.ToolCall{ID: "call_1", Name: "find", Input: `{"q":"x"}`}
	found := []state.Message{state.UserText("Hi!"), state.ToolCalls(call), state.ToolResult(call, `"found"`)}
	parts, err := state.Parts("user", `{"type":"text","text":"Hi!"}`)
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		msgs   []state.Message
		behind bool // it is the last of the request
	}{
		{"the user has spoken", []state.Message{state.UserText("Hi!")}, true},
		{"in parts", []state.Message{parts}, true},
		{"results have come", found, true},
		{"the user and results", append(found[:3:3], state.UserText("And?")), true},
		{"the assistant has spoken", append(found[:3:3], state.AssistantText("It is ")), false},
		{"nobody has", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, a api, streamed bool) {
				server := newRecorder(t, a, streamed)
				send := func(transport *wire.Transport) *state.State {
					st := newState(t, c.msgs...)
					_, err := readAll(post(t, newClient(t, transport), st, server.URL+a.pathOf(streamed), a.body(streamed)))
					require.NoError(t, err)
					return st
				}
				plain := send(&wire.Transport{Context: say("")})
				st := send(&wire.Transport{Context: say(`It is "late".`)})
				sent := server.last(t, a).Messages
				require.Empty(t, transcript.Check(sent, a.profile))

				const tagged = `<context>\nIt is \"late\".\n</context>`
				body := server.bodies[1]
				require.Equal(t, 1, strings.Count(body, tagged), body)
				last := sent[len(sent)-1]
				require.Equal(t, c.behind, strings.Contains(string(last.Raw()), tagged))
				if c.behind && len(c.msgs) > 0 {
					before, _, _ := strings.Cut(body, tagged)
					require.Greater(t, commonPrefix(server.bodies[0], before)+60, len(before), "\n%s\n%s", server.bodies[0], before)
				}
				if len(c.msgs) > 0 && !c.behind {
					require.Equal(t, "assistant", last.Role())
				}
				result, _ := st.History().Last()
				require.NotContains(t, texts(result.Prompt)+texts(result.History), "late")
				want, _ := plain.History().Last()
				require.Equal(t, texts(want.Prompt), texts(result.Prompt))
				require.Equal(t, texts(state.Messages.GetOr(plain, nil)), texts(state.Messages.GetOr(st, nil)))
			})
		})
	}
}

// With RecordOnly, the program has the conversation. It gets the context, too.
func TestContextOfAProgramWithTheConversation(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":"Hi!"}]}`:                                     `"Hi!\n\n<context>\nlate\n</context>"`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi!"}]}]}`:            `{"type":"text","text":"<context>\nlate\n</context>"}]`,
		`{"model":"m","messages":[{"role":"user","content":"Hi!"},{"role":"assistant","content":"He"}]}`: `"Hi!\n\n<context>\nlate\n</context>"},{"role":"assistant","content":"He"}`,
		`{"model":"m","messages":[{"role":"system","content":"Be kind."}]}`:                              `{"role":"user","content":"<context>\nlate\n</context>"}`,
		`{"model":"m","messages":[{"role":"assistant","content":"He"}]}`:                                 `"He"},{"role":"user","content":"<context>\nlate\n</context>"}`,
	} {
		server := newRecorder(t, apis[0], false)
		_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true, Context: say("late")}), newState(t), server.URL+apis[0].path, body))
		require.NoError(t, err)
		require.Contains(t, server.bodies[0], want)
	}
}

// Parts of the user keep the words of the format that they came from.
func TestContextBehindPartsOfTheResponsesAPI(t *testing.T) {
	a := apis[1]
	server := newRecorder(t, a, false)
	body := `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"Hi!"}]}]}`
	_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true, Context: say("late")}), newState(t), server.URL+a.path, body))
	require.NoError(t, err)
	require.Contains(t, server.bodies[0], `[{"type":"input_text","text":"Hi!"},{"type":"input_text","text":"<context>\nlate\n</context>"}]`)
}

// A provider that holds the conversation would hold the context as well.
func TestContextOfAContinuedConversation(t *testing.T) {
	a := apis[1]
	server := newRecorder(t, a, false)
	body := `{"model":"m","previous_response_id":"r0","input":"Hi!"}`
	for _, prompt := range []string{"", "Be kind."} {
		transport := &wire.Transport{Prompt: say(prompt), Context: say("late")}
		_, err := readAll(post(t, newClient(t, transport), newState(t), server.URL+a.path, body))
		require.NoError(t, err)
	}
	require.Contains(t, server.bodies[0], `"instructions":"<context>\nlate\n</context>"`)
	require.Contains(t, server.bodies[1], `"instructions":"Be kind.\n\n<context>\nlate\n</context>"`)
	for _, body := range server.bodies {
		require.Contains(t, body, `"input":"Hi!"`)
	}
}

// A server that wants the assistant to speak after results gets the context
// where the user has spoken.
func TestContextWhereTheAssistantMustSpeakAfterResults(t *testing.T) {
	rules := transcript.OpenAI.Rules()
	rules.AssistantAfterResults = true
	profile, err := transcript.NewProfile(rules)
	require.NoError(t, err)
	call := state.ToolCall{ID: "call_1", Name: "find", Input: `{"q":"x"}`}
	server := newRecorder(t, apis[0], false)
	st := newState(t, state.UserText("Hi!"), state.ToolCalls(call), state.ToolResult(call, `"found"`))
	transport := &wire.Transport{
		Context: say("late"),
		Profile: func(context.Context, transcript.Profile) transcript.Profile { return profile },
	}
	_, err = readAll(post(t, newClient(t, transport), st, server.URL+apis[0].path, apis[0].body(false)))
	require.NoError(t, err)
	sent := server.last(t, apis[0]).Messages
	require.Empty(t, transcript.Check(sent, profile))
	require.Equal(t, "Hi!\n\n<context>\nlate\n</context>", sent[1].(state.TextMessage).Text())
	require.Equal(t, "tool_result", sent[len(sent)-1].Type())
}

func TestContextIsMasked(t *testing.T) {
	secret := &state.Field[string]{Name: "card", Secret: true}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		st := state.New(state.MustSchema(secret))
		require.NoError(t, secret.Set(st, "4242-4242"))
		server := newRecorder(t, a, streamed)
		transport := &wire.Transport{Redact: true, Cache: true, Context: say("Card 4242-4242.")}
		_, err := readAll(post(t, newClient(t, transport), st, server.URL+a.pathOf(streamed), a.body(streamed)))
		require.NoError(t, err)
		require.NotContains(t, server.bodies[0], "4242")
		require.Contains(t, server.bodies[0], `<context>\nCard [SECRET].`)
	})
}

// commonPrefix returns how many bytes two texts have in common at their
// beginning.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

var (
	contextText = regexp.MustCompile(`<context>\\n.*?\\n</context>`)
	breakpoint  = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)
)

// sharedPrefix returns how many bytes successive requests have in common at their
// beginning, of those that they could have: the bytes of the shorter one, without
// the context. Breakpoints are no part of what a provider compares.
func sharedPrefix(bodies []string) float64 {
	shared, all := 0, 0
	for i, body := range bodies[:len(bodies)-1] {
		body, next := breakpoint.ReplaceAllString(body, ""), breakpoint.ReplaceAllString(bodies[i+1], "")
		shared += commonPrefix(body, next)
		all += min(len(contextText.ReplaceAllString(body, "")), len(contextText.ReplaceAllString(next, "")))
	}
	return float64(shared) / float64(all)
}

// A state that is described and changes at each request costs no more than its
// description.
func TestRequestsShareTheirBeginning(t *testing.T) {
	count := &state.Field[int]{Name: "count", Handler: state.Sum[int]()}
	note := &state.Field[string]{Name: "note"}
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			moved := 0
			share := func(transport *wire.Transport) float64 {
				server := newRecorder(t, a, false)
				before := 0
				client, st := newClient(t, transport), state.New(state.MustSchema(count, note))
				for i := range 60 {
					require.NoError(t, count.Set(st, 1))
					require.NoError(t, note.Set(st, strings.Repeat("n", 100)))
					said := []state.Message{state.UserText(fmt.Sprintf("Question %d: %s", i, strings.Repeat("why? ", 30)))}
					if i%3 == 2 {
						call := state.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "find", Input: `{"q":"x"}`}
						said = append(said, state.ToolCalls(call), state.ToolResult(call, `"found"`))
					}
					require.NoError(t, state.Messages.Set(st, said))
					_, err := readAll(post(t, client, st, server.URL+a.path, a.body(false)))
					require.NoError(t, err)
					if result, _ := st.History().Last(); i > 0 && len(result.History) < before {
						moved++
					}
					result, _ := st.History().Last()
					before = len(result.History)
				}
				part := sharedPrefix(server.bodies)
				t.Logf("%.1f %% of the bytes", 100*part)
				return part
			}
			describe := func(_ context.Context, st *state.State) string { return st.Describe() }
			require.Less(t, share(&wire.Transport{Prompt: describe}), 0.2)
			require.Greater(t, share(&wire.Transport{Context: describe}), 0.95)
			require.Greater(t, share(&wire.Transport{Context: describe, Cache: true}), 0.95)
			require.Zero(t, moved)
			windowed := &wire.Transport{Context: describe, Cache: true, Window: &transcript.Window{Target: 3600, Tokens: func(state.Message) int { return 50 }}}
			require.Greater(t, share(windowed), 0.95)
			require.Equal(t, 3, moved)
		})
	}
}

func TestAPromptThatChangesIsToldOnce(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		var out bytes.Buffer
		prompt, instructions := "It is noon.", a.body(streamed)
		transport := &wire.Transport{
			Logger: slog.New(slog.NewTextHandler(&out, nil)),
			Prompt: func(context.Context, *state.State) string { return prompt },
		}
		server, st, client := newRecorder(t, a, streamed), newState(t, state.UserText("Hi!")), newClient(t, transport)
		ask := func(st *state.State, body string) {
			t.Helper()
			_, err := readAll(post(t, client, st, server.URL+a.pathOf(streamed), body))
			require.NoError(t, err)
		}
		ask(st, instructions)
		ask(st, instructions)
		ask(st, strings.Replace(instructions, "Be kind.", "Make a title.", 1)) // of the program's own
		ask(st, instructions)
		prompt = "It is night."
		ask(newState(t, state.UserText("Hi!")), instructions) // another State
		require.Empty(t, out.String())
		ask(st, instructions)
		require.Equal(t, 1, strings.Count(out.String(), "level=WARN"), out.String())
		require.Contains(t, out.String(), "Transport.Prompt differs")
		require.NotContains(t, out.String(), "night")
		prompt = "It is dawn."
		ask(st, instructions)
		require.Equal(t, 1, strings.Count(out.String(), "level=WARN"), out.String())
	})
}

// Agents of one State have prompts of their own.
func TestPromptsOfAgentsDiffer(t *testing.T) {
	var out bytes.Buffer
	transport := &wire.Transport{
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Prompt: func(_ context.Context, st *state.State) string { return "You are " + st.Agent() + "." },
	}
	server, client := newRecorder(t, apis[0], false), newClient(t, transport)
	st := state.New(nil)
	for _, agent := range []string{"writer", "reader", "writer", "reader"} {
		_, err := readAll(post(t, client, st.As(agent), server.URL+apis[0].path, apis[0].body(false)))
		require.NoError(t, err)
	}
	require.Empty(t, out.String())
}

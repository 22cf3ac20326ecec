package wire_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// short spells a request to Anthropic with ! for a breakpoint, and !1h for one
// that lives for an hour.
var short = strings.NewReplacer(
	`,"cache_control":{"type":"ephemeral"}`, `!`,
	`,"cache_control":{"type":"ephemeral","ttl":"1h"}`, `!1h`,
	`"type":"text",`, ``, `"role":"user","content":`, `user `, `"role":"assistant","content":`, `assistant `,
)

// long is the reverse of short for breakpoints.
var long = strings.NewReplacer(
	`!1h`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`, `!`, `,"cache_control":{"type":"ephemeral"}`,
)

func TestBreakpointsOfAnthropic(t *testing.T) {
	const (
		talk   = `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`
		wanted = `"messages":[{user [{"text":"a"!}]},{assistant "b"},{user [{"text":"c"!}]}]`
	)
	for _, c := range []struct{ name, body, want string }{
		{"all four",
			`{"tools":[{"name":"f"},{"name":"g"}],"system":"s",` + talk + `}`,
			`{"tools":[{"name":"f"},{"name":"g"!}],"system":[{"text":"s"!}],` + wanted + `}`},
		{"blocks, and no tools",
			`{"system":[{"type":"text","text":"r"},{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"a"}]}]}`,
			`{"system":[{"text":"r"},{"text":"s"!}],"messages":[{user [{"type":"image"},{"text":"a"!}]}]}`},
		{"a tool that is loaded later",
			`{"tools":[{"name":"f"},{"name":"g","defer_loading":true}],"messages":[]}`,
			`{"tools":[{"name":"f"!},{"name":"g","defer_loading":true}],"messages":[]}`},
		{"those of the program stay",
			`{"tools":[{"name":"f"!},{"name":"g"}],"system":[{"type":"text","text":"s"!}],` + talk + `}`,
			`{"tools":[{"name":"f"!},{"name":"g"!}],"system":[{"text":"s"!}],"messages":[{user [{"text":"a"}]},{assistant "b"},{user [{"text":"c"!}]}]}`},
		{"and are enough",
			`{"system":[{"type":"text","text":"q"!},{"type":"text","text":"r"!},{"type":"text","text":"s"!},{"type":"text","text":"t"!}],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
			`{"system":[{"text":"q"!},{"text":"r"!},{"text":"s"!},{"text":"t"!}],"messages":[{user [{"text":"a"}]}]}`},
		{"also within a result",
			`{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a"!}]}]}]}`,
			`{"system":[{"text":"s"!}],"messages":[{user [{"type":"tool_result","content":[{"text":"a"!}]}]}]}`},
		{"one that lives longer comes first",
			`{"tools":[{"name":"g"}],"system":[{"type":"text","text":"s"!1h}],` + talk + `}`,
			`{"tools":[{"name":"g"!1h}],"system":[{"text":"s"!1h}],"messages":[{user [{"text":"a"!1h}]},{assistant "b"},{user [{"text":"c"!1h}]}]}`},
		{"and one that lives shorter after it",
			`{"tools":[{"name":"g"!1h}],"system":[{"type":"text","text":"s"!}],` + talk + `}`,
			`{"tools":[{"name":"g"!1h}],"system":[{"text":"s"!}],` + wanted + `}`},
		{"between two that live for different times",
			`{"tools":[{"name":"g"}],"system":[{"type":"text","text":"s"!1h}],"messages":[{"role":"user","content":[{"type":"text","text":"a"!}]}]}`,
			`{"tools":[{"name":"g"!1h}],"system":[{"text":"s"!1h}],"messages":[{user [{"text":"a"!}]}]}`},
		{"that of the whole request",
			`{"cache_control":{"type":"ephemeral","ttl":"1h"},"tools":[{"name":"g"}],"system":"s",` + talk + `}`,
			`{"cache_control":{"type":"ephemeral","ttl":"1h"},"tools":[{"name":"g"!1h}],"system":[{"text":"s"!1h}],"messages":[{user [{"text":"a"}]},{assistant "b"},{user [{"text":"c"!1h}]}]}`},
		{"the word in a text is none",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"\"cache_control\""}]}]}`,
			`{"messages":[{user [{"text":"\"cache_control\""!}]}]}`},
		{"nothing to say", `{"system":"","messages":[]}`, `{"system":"","messages":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newRecorder(t, apis[2], false)
			_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true, Cache: true}), newState(t), server.URL+apis[2].path, long.Replace(c.body)))
			require.NoError(t, err)
			require.Equal(t, c.want, short.Replace(server.bodies[0]))
		})
	}
}

// The breakpoint stands in front of the context, which differs in each request.
func TestBreakpointsInFrontOfTheContext(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "f", Input: `{}`}
	talk := []state.Message{state.UserText("a"), state.ToolCalls(call), state.ToolResult(call, `"r"`)}
	send := func(msgs ...state.Message) string {
		server := newRecorder(t, apis[2], false)
		transport := &wire.Transport{Cache: true, Context: say("late")}
		_, err := readAll(post(t, newClient(t, transport), newState(t, msgs...), server.URL+apis[2].path, `{"messages":[]}`))
		require.NoError(t, err)
		require.Empty(t, transcript.Check(server.last(t, apis[2]).Messages, transcript.Anthropic))
		return short.Replace(server.bodies[0])
	}
	const behind = `{"text":"<context>\nlate\n</context>"}`
	require.Equal(t, `{"messages":[{user [{"text":"a"!},`+behind+`]}]}`, send(talk[0]))
	require.Contains(t, send(talk...), `{user [{"type":"tool_result","tool_use_id":"c1","content":"r"!},`+behind+`]}]}`)
	require.Contains(t, send(talk...), `{user [{"text":"a"!}]}`)
	require.Contains(t, send(talk[0], state.AssistantText("b")), `{user [{"text":"a"!},`+behind+`]},{assistant "b"}`)
	require.Equal(t, `{"messages":[{user [`+behind+`]}]}`, send())
}

// Requests of one workspace have a key of the cache, and it does not tell whose
// they are.
func TestCacheKeysOfOpenAI(t *testing.T) {
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			server := newRecorder(t, a, false)
			keys := func(transport *wire.Transport, body string, users ...string) (keys []string) {
				client := newClient(t, transport)
				m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
					return callModel(ctx, client, server.URL+a.path, body)
				}})
				require.NoError(t, err)
				defer m.Close()
				for _, user := range users {
					_, err := m.Handle(t.Context(), user, workspace.Message{Content: state.UserText("Hi!")})
					require.NoError(t, err)
					_, after, found := strings.Cut(server.bodies[len(server.bodies)-1], `"prompt_cache_key":"`)
					key, _, _ := strings.Cut(after, `"`)
					require.Equal(t, found, key != "")
					keys = append(keys, key)
				}
				return keys
			}
			got := keys(&wire.Transport{RecordOnly: true, Cache: true}, a.body(false), "ann@example.org", "bob", "ann@example.org")
			if !strings.HasPrefix(a.format.String(), "OpenAI") {
				require.Equal(t, []string{"", "", ""}, got)
				return
			}
			require.Equal(t, got[0], got[2])
			require.NotEqual(t, got[0], got[1])
			require.Len(t, got[0], 32)
			require.NotEqual(t, got[0], keys(&wire.Transport{RecordOnly: true, Cache: true}, a.body(false), "ann@example.org")[0], "another Manager")
			require.Equal(t, []string{""}, keys(&wire.Transport{RecordOnly: true}, a.body(false), "bob"))
			own := strings.Replace(a.body(false), `{`, `{"prompt_cache_key":"own",`, 1)
			require.Equal(t, []string{"own"}, keys(&wire.Transport{RecordOnly: true, Cache: true}, own, "bob"))

			before := len(server.bodies) // without a workspace there is none
			_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true, Cache: true}), newState(t), server.URL+a.path, a.body(false)))
			require.NoError(t, err)
			require.Equal(t, a.body(false), server.bodies[before])
		})
	}
}

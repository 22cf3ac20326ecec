package state_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// logOf returns a text of n bytes.
func logOf(n int) string { return strings.Repeat("0123456789abcde\n", n/16+1)[:n] }

// sizeOf returns the member by which a result says how much of it is shown.
func sizeOf(m state.Message) string {
	size, _ := m.Extra("shown")
	return string(size)
}

func TestLargeResultsSayHowMuchIsShown(t *testing.T) {
	call := state.ToolCall{ID: "c", Name: "read", Input: `{}`}
	large := state.ToolResult(call, state.JSONText(logOf(100_000)))
	said := state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}
	for name, record := range map[string]func(st *state.State) error{
		"Answer": func(st *state.State) error {
			if err := st.History().Append(said); err != nil {
				return err
			}
			return st.History().Answer(large)
		},
		"Append": func(st *state.State) error {
			said := said
			said.ToolCalls = []state.ToolResultMessage{large}
			return st.History().Append(said)
		},
		"Load": func(st *state.State) error {
			said := said
			said.ToolCalls = []state.ToolResultMessage{large}
			return st.History().Load([]state.InferenceResult{said}, []state.Message{said.Output[0], large})
		},
		"Set":     func(st *state.State) error { return state.Messages.Set(st, []state.Message{said.Output[0], large}) },
		"Replace": func(st *state.State) error { return state.Messages.Replace(st, []state.Message{said.Output[0], large}) },
		"Update": func(st *state.State) error {
			return state.Messages.Update(st, func([]state.Message) ([]state.Message, error) {
				return []state.Message{said.Output[0], large}, nil
			})
		},
		"KV": func(st *state.State) error { return st.KV().Set("messages", []state.Message{said.Output[0], large}) },
		"Patch": func(st *state.State) error {
			return st.Patch(map[string]any{"messages": []state.Message{said.Output[0], large}})
		},
		"a step": func(st *state.State) error {
			read := tool.Must(tool.Raw("read", "Reads.", `{"type":"object"}`, func(context.Context, state.JSON) (state.JSON, error) { return large.Content(), nil }))
			if err := st.History().Append(said); err != nil {
				return err
			}
			results, err := tool.Answer(t.Context(), st, []*tool.Tool{read}, st.History().Pending())
			require.Equal(t, sizeOf(state.Messages.GetOr(st, nil)[1]), sizeOf(results[0].Message), "a program may send it itself")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(nil)
			require.NoError(t, record(st))
			msgs := state.Messages.GetOr(st, nil)
			require.Equal(t, "16384", sizeOf(msgs[1]))
			require.Equal(t, large.Text(), msgs[1].Text(), "it is stored whole")
			for _, r := range st.History().All() {
				require.Equal(t, "16384", sizeOf(r.ToolCalls[0]))
			}
			again, err := state.Import(st.Schema(), exportOf(t, st))
			require.NoError(t, err)
			require.Equal(t, msgs[1].Raw(), state.Messages.GetOr(again, nil)[1].Raw(), "and exported whole")

			other := state.New(state.MustSchema(state.Limits{ResultBytes: 300}))
			require.NoError(t, state.Messages.Set(other, msgs))
			require.Equal(t, "16384", sizeOf(state.Messages.GetOr(other, nil)[1]), "it is decided once")

			off := state.New(state.MustSchema(state.Limits{ResultBytes: -1}))
			require.NoError(t, record(off))
			require.Empty(t, sizeOf(state.Messages.GetOr(off, nil)[1]), "it is turned off")
		})
	}
	require.Empty(t, sizeOf(large), "the caller's message does not change")
}

func exportOf(t *testing.T, st *state.State) []byte {
	t.Helper()
	data, err := st.Export()
	require.NoError(t, err)
	return data
}

// A result as long as the limit, and files, are shown whole.
func TestResultsThatAreShownWhole(t *testing.T) {
	call := state.ToolCall{ID: "c", Name: "read"}
	for name, content := range map[string]state.JSON{
		"the limit": state.JSONText(logOf(16 << 10)),
		"escapes":   state.JSONText(strings.Repeat("\"", 16<<10)), // twice as many bytes of JSON
		"an image":  `[{"type":"text","text":"a picture"},{"type":"image","mimeType":"image/png","data":"` + state.JSON(strings.Repeat("A", 100_000)) + `"}]`,
	} {
		st := state.New(nil)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.ToolResult(call, content)}))
		require.Empty(t, sizeOf(state.Messages.GetOr(st, nil)[0]), name)
	}
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.ToolResult(call, state.JSONText(logOf(16<<10+1)))}))
	require.NotEmpty(t, sizeOf(state.Messages.GetOr(st, nil)[0]))
}

// Wherever secrets are in a result, and whoever masks what is shown of it, no half
// of one is shown.
func TestNoHalfOfASecretIsShown(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(200, 2000).Draw(t, "limit")
		st := state.New(state.MustSchema(secret, state.Limits{ResultBytes: limit}))
		value := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 8, 60, -1).Draw(t, "secret") + "Z"
		require.NoError(t, secret.Set(st, value))
		var text strings.Builder
		for text.Len() < 3*limit {
			text.WriteString(rapid.SampledFrom([]string{"x\n", "yy ", "é", value, "[SECRET]", "{\"n\":1}"}).Draw(t, "piece"))
		}
		require.NoError(t, state.Messages.Set(st, []state.Message{state.ToolResult(state.ToolCall{ID: "c", Name: "read"}, state.JSONText(text.String()))}))
		shown := transcript.Shown(state.Messages.GetOr(st, nil), false)[0].Text()
		require.LessOrEqual(t, len(shown), limit)
		pieces := leftOut.Split(shown, -1)
		require.Len(t, pieces, 2)
		require.True(t, strings.HasPrefix(text.String(), pieces[0]))
		require.True(t, strings.HasSuffix(text.String(), pieces[1]))
		for _, piece := range pieces { // masks what is shown of it as it masks it in the whole
			require.Contains(t, st.Redact("\n"+text.String())+"\n", strings.TrimSpace(st.Redact("\n"+piece)))
		}
	})
}

var leftOut = regexp.MustCompile(`\n\[\d+ characters are left out here\.\]\n`)

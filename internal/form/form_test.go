package form_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort/property"
)

// forms are forms of any content. Their runs may be out of range.
var forms = rapid.Custom(func(t *rapid.T) *form.State {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.ToValidUTF8(rapid.OneOf(
			rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("a\"\\<>&\b\f\n\r\t\x00\x1f\x7f\u2028\u2029😀\ufffd")), 0, 12, -1),
		).Draw(t, "text"), "")
	})
	value := rapid.Custom(func(t *rapid.T) json.RawMessage {
		data, err := jsontext.Marshal(map[string]any{text.Draw(t, "member"): []any{text.Draw(t, "text"), rapid.Float64().Draw(t, "number"), nil}})
		require.NoError(t, err)
		return data
	})
	field := rapid.Custom(func(t *rapid.T) form.Field {
		return form.Field{Name: text.Draw(t, "name"), Value: value.Draw(t, "value")}
	})
	run := rapid.Custom(func(t *rapid.T) form.Run {
		return form.Run{From: rapid.IntRange(0, 99).Draw(t, "from"), To: rapid.Int().Draw(t, "to")}
	})
	runs := rapid.OneOf(rapid.Just[[]form.Run](nil), rapid.SliceOfN(run, 1, 3))
	result := rapid.Custom(func(t *rapid.T) form.Result {
		r := form.Result{
			ID: text.Draw(t, "id"), Agent: text.Draw(t, "agent"), Input: text.Draw(t, "input"),
			Prompt: runs.Draw(t, "prompt"), History: runs.Draw(t, "history"),
			Output: runs.Draw(t, "output"), ToolCalls: runs.Draw(t, "called"),
			CreatedAt: time.Unix(rapid.Int64Range(-1<<35, 1<<37).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC(),
		}
		if rapid.Bool().Draw(t, "stopped") {
			r.Stop, r.StopWord = text.Draw(t, "stop"), text.Draw(t, "stop word")
		}
		if rapid.Bool().Draw(t, "counted") {
			count := rapid.IntRange(0, 2)
			r.Usage = form.Usage{
				Input: count.Draw(t, "input"), Output: count.Draw(t, "output"), CacheRead: count.Draw(t, "read"),
				CacheWrite: count.Draw(t, "written"), Reasoning: count.Draw(t, "reasoning"),
			}
		}
		if rapid.Bool().Draw(t, "started") {
			r.StartedAt = r.CreatedAt.Add(-time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "took")))
		}
		r.SetRaw(rapid.OneOf(text, rapid.Just("\xff")).Draw(t, "raw"))
		return r
	})
	s := &form.State{Format: form.Format, Version: uint64(rapid.Int64Min(0).Draw(t, "version"))}
	s.Fields = rapid.SliceOfN(field, 0, 3).Draw(t, "fields")
	s.Keys = rapid.SliceOfN(field, 0, 3).Draw(t, "keys")
	s.Results = rapid.SliceOfN(result, 0, 3).Draw(t, "results")
	for _, text := range rapid.SliceOfN(value, 0, 3).Draw(t, "messages") {
		s.Messages = append(s.Messages, form.Message(text))
	}
	if rapid.Bool().Draw(t, "conversation") {
		list := append([]form.Run{}, runs.Draw(t, "runs")...)
		s.Conversation = &list
	}
	return s
})

// Exports are compared, hashed and kept for years. Their bytes are those that
// encoding/json has written from the beginning.
func TestAppendJSONWritesWhatEncodingJSONWrites(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := forms.Draw(t, "form")
		want, err := jsontext.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, string(want), string(s.AppendJSON(nil)))
		require.Equal(t, "x"+string(want), string(s.AppendJSON([]byte("x"))))
	})
}

func TestDecodeReadsWhatAppendJSONWrote(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := forms.Draw(t, "form").AppendJSON(nil)
		s, err := form.Decode(text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(s.AppendJSON(nil)))

		var spaced []byte
		for _, token := range strings.SplitAfter(string(text), ",") {
			spaced = append(append(spaced, token...), " \n"...)
		}
		if jsontext.Check(spaced, jsontext.Limits{}) == nil && string(jsontext.AppendCompact(nil, spaced)) == string(text) {
			s, err = form.Decode(spaced)
			require.NoError(t, err)
			require.Equal(t, string(text), string(jsontext.AppendCompact(nil, s.AppendJSON(nil))))
		}
	})
}

// The members of a field may come in any order and with any spelling, and all
// that is wrong with it is an error.
func TestDecodeReadsFieldsInEverySpelling(t *testing.T) {
	for text, want := range map[string]form.Field{
		`{"name":"a","value":1}`:                   {Name: "a", Value: []byte(`1`)},
		` { "value" : [ 1 ] , "name" : "\u0061" }`: {Name: "a", Value: []byte(`[ 1 ]`)},
		`{"n\u0061me":"a","value":{"name":"b"}}`:   {Name: "a", Value: []byte(`{"name":"b"}`)},
		`{"name":null,"value":null}`:               {Value: []byte(`null`)},
		`{"value":1}`:                              {Value: []byte(`1`)},
		`{"name":"a"}`:                             {Name: "a"},
	} {
		s, err := form.Decode([]byte(`{"format":1,"keys":[` + text + `]}`))
		require.NoError(t, err, text)
		require.Equal(t, []form.Field{want}, s.Keys, text)
	}
	for text, want := range map[string]string{
		`{"name":1,"value":1}`:           `$.fields[1].name: want string, got number`,
		`{"name":"a","value":1,"x":1}`:   `$.fields[1].x: unknown member: want name, value`,
		`{"name":"a","Value":1}`:         `$.fields[1].Value: unknown member: want name, value`,
		`{"name":"a","name":"a"}`:        `$.fields[1].name: the member occurs twice`,
		`["name","value"]`:               `$.fields[1]: want object, got array`,
		`null`:                           `$.fields[1]: want object, got null`,
		`{"name":"a","value":1},{"x":1}`: `$.fields[2].x: unknown member: want name, value`,
	} {
		_, err := form.Decode([]byte(`{"format":1,"fields":[{"name":"first","value":1},` + text + `]}`))
		require.EqualError(t, err, want)
	}
}

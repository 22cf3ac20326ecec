package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/tool"
)

// canary is in every injected or hidden value, in the names of its members, and in
// the texts of validation errors about it.
const canary = "Xq7canaryZ"

type secretIn struct {
	Text   string         `json:"text,omitempty"`
	Number int            `json:"number,omitempty"`
	List   []int          `json:"list,omitempty"`
	Map    map[string]int `json:"map,omitempty"`
	Any    any            `json:"any"`
}

// No byte of an injected value or of a hidden field is in a schema, a result or an
// error, for all bindings and all arguments of the model.
func TestSecretsStayUnseen(t *testing.T) {
	validate := func(v any) error {
		if s := fmt.Sprint(v); strings.Contains(s, "refuse") {
			return errors.New("validation of " + s + canary)
		}
		return nil
	}
	text := &state.Field[string]{Name: "f_text", Owner: "a", Validate: func(s string) error { return validate(s) }}
	list := &state.Field[[]string]{Name: "f_list", Owner: "a", Validate: func(l []string) error { return validate(l) }}
	dict := &state.Field[map[string]string]{Name: "f_map", Owner: "a", Handler: state.NewHandler("own", func(current map[string]string, _ bool, update map[string]string) (map[string]string, error) {
		return nil, fmt.Errorf("handler has %v and %v", current, update)
	})}
	free := &state.Field[any]{Name: "f_any", Owner: "a"}
	hidden := &state.Field[string]{Name: "f_hidden", Owner: "b"}
	masked := &state.Field[string]{Name: "f_secret", Owner: "a", Secret: true}
	schema := state.MustSchema(state.Team{"a": {"b"}}, text, list, dict, free, hidden, masked)
	fields := []string{"f_text", "f_list", "f_map", "f_any", "f_hidden", "f_secret", "f_none"}
	params := []string{"text", "number", "list", "map", "any"}
	results := []state.JSON{`{}`, `{"k":"v"}`, `{"k":"refuse"}`, `{"k":["refuse"]}`, `{"k":{"refuse":"x"}}`, `{"k":1,"l":null}`, `[]`, `"s"`, ``, `{`}
	arguments := []state.JSON{``, `{}`, `{"any":1}`, `{"any":"a"}`, `{"any":[]}`, `{"text":"a"}`, `{"text":1,"number":"x","list":[true]}`, `{"map":{"a":"b"}}`, `{"any":1,"text":null}`, `{"Text":1}`, `[`, `{"any":{},"f_text":1}`}

	outcomes := map[bool]int{}
	property.Check(t, func(rt *rapid.T) {
		st := state.New(schema)
		require.NoError(rt, text.Set(st, canary))
		require.NoError(rt, list.Set(st, []string{canary}))
		require.NoError(rt, dict.Replace(st, map[string]string{canary: canary}))
		values := []any{canary, []any{canary, 1}, map[string]any{canary: map[string]any{canary: canary}}}
		require.NoError(rt, free.Set(st, rapid.SampledFrom(values).Draw(rt, "any")))
		require.NoError(rt, hidden.Set(st, canary))
		require.NoError(rt, masked.Set(st, canary))

		var opts []tool.Option
		for range rapid.IntRange(0, 3).Draw(rt, "inputs") {
			opts = append(opts, tool.FromName(rapid.SampledFrom(fields).Draw(rt, "field"), rapid.SampledFrom(params).Draw(rt, "parameter")))
		}
		if rapid.Bool().Draw(rt, "typed") {
			opts = append(opts, tool.From(text, "text"), tool.From(free, "any"))
		}
		for range rapid.IntRange(0, 3).Draw(rt, "outputs") {
			opts = append(opts, tool.ToName(rapid.SampledFrom(fields).Draw(rt, "field"), rapid.SampledFrom([]string{"", "k", "l"}).Draw(rt, "key")))
		}
		result := rapid.SampledFrom(results).Draw(rt, "result")
		panics := rapid.IntRange(0, 9).Draw(rt, "panics") == 0
		answer := func(in any) (state.JSON, error) {
			if panics {
				panic(fmt.Sprint(in))
			}
			return result, nil
		}
		var x *tool.Tool
		var err error
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 0:
			x, err = tool.New("x", "", func(_ context.Context, in secretIn) (state.JSON, error) { return answer(in) }, opts...)
		case 1:
			x, err = tool.New("x", "", func(_ context.Context, in map[string]any) (state.JSON, error) { return answer(in) }, opts...)
		default:
			x, err = tool.Raw("x", "", `{"type":"object","properties":{"text":{"type":"string"},"number":{"type":"integer"},"list":{"type":"array"},"map":{"type":"object"},"any":{}},"additionalProperties":false}`,
				func(_ context.Context, in state.JSON) (state.JSON, error) { return answer(in) }, opts...)
		}
		if err != nil {
			require.NotContains(rt, err.Error(), canary)
			return
		}
		require.NotContains(rt, string(x.Schema()), canary)
		bound := st.As("a")
		for _, args := range arguments {
			before := st.Version()
			out, err := x.Call(rt.Context(), bound, args)
			outcomes[err == nil]++
			if err != nil {
				require.NotContains(rt, err.Error(), canary)
				require.Equal(rt, before, st.Version())
			}
			require.NotContains(rt, string(out), canary)
			results, err := tool.Run(rt.Context(), bound, []*tool.Tool{x}, []state.ToolCall{{ID: "1", Name: "x", Input: args}})
			if err != nil {
				require.NotContains(rt, err.Error(), canary)
			}
			for _, r := range results {
				require.NotContains(rt, string(r.Message.Raw()), canary)
			}
		}
	})
	if !testing.Short() { // ten programs may all end the same way
		require.NotZero(t, outcomes[true])
		require.NotZero(t, outcomes[false])
	}
}

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// FuzzCall sends any text as arguments. If the call accepts it, encoding/json reads
// the same arguments from it. If not, the error is an ArgumentError and nothing is
// written.
func FuzzCall(f *testing.F) {
	for _, args := range []string{
		``, `null`, `{}`, ` {} `, `[]`, `"{}"`, `{"query":"a"}`, `{"query":"a","limit":3,"tags":["x",null],"any":{"a":[1,2.5,null]},"meta":{"k":-0}}`,
		`{"query":1}`, `{"query":null}`, `{"Query":"a"}`, `{"query":"a","QUERY":"b"}`, `{"query":"a","query":"b"}`, `{"qu\u0065ry":"\ud83d\ude00"}`, `{"query":"\ud83d"}`,
		`{"query":"a","tenant":"evil"}`, `{"query":"a","ten\u0061nt":null}`, `{"query":"a","limit":1e2}`, `{"query":"a","limit":-9223372036854775809}`,
		`{"query":"a","since":"2024-02-30"}`, "{\"query\":\"\xff\"}", `{"query":"a"}}`, `{"query":`,
		`{"any":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `,"query":""}`, `{"query":"` + strings.Repeat("a", 1<<10) + `"}`,
	} {
		f.Add(args)
	}
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(text, coreAny)
	var got coreIn
	x := tool.Must(tool.New("x", "", func(_ context.Context, in coreIn) (string, error) { got = in; return in.Query, nil },
		tool.From(text, "tenant"), tool.To(coreAny, "")))
	raw := tool.Must(tool.Raw("x", "", `{"properties":{"query":{"type":"string"},"tenant":{}},"required":["query"],"additionalProperties":false}`,
		func(_ context.Context, args state.JSON) (state.JSON, error) { return args, nil }, tool.From(text, "tenant")))
	f.Fuzz(func(t *testing.T, args string) {
		st := state.New(schema)
		require.NoError(t, text.Set(st, "tenant-7"))
		got = coreIn{}
		out, err := x.Call(t.Context(), st, state.JSON(args))
		var bad *tool.ArgumentError
		if err != nil {
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Errs)
			require.True(t, utf8.ValidString(err.Error()) || !utf8.ValidString(args))
			require.Equal(t, uint64(1), st.Version())
			require.Equal(t, coreIn{}, got, "the function ran")
		} else {
			require.Equal(t, "tenant-7", got.Tenant)
			var want struct {
				Query string `json:"query"`
			}
			require.NoError(t, json.Unmarshal([]byte(args), &want))
			require.Equal(t, want.Query, got.Query)
			require.True(t, out.Valid())
			require.Equal(t, want.Query, coreAny.GetOr(st, nil))
		}

		out, err = raw.Call(t.Context(), st, state.JSON(args))
		if err != nil {
			require.True(t, errors.As(err, &bad))
			return
		}
		var members map[string]any
		require.NoError(t, out.Decode(&members))
		require.Len(t, members, 2)
		require.Equal(t, "tenant-7", members["tenant"])
	})
}

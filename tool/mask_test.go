package tool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
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

// cardError is an error that keeps a secret.
type cardError struct{ card string }

func (e *cardError) Error() string { return "cannot charge " + e.card }

// TestResultsAndErrorsHaveNoSecrets has tools return and fail with an injected
// secret, through each way to call them.
func TestResultsAndErrorsHaveNoSecrets(t *testing.T) {
	const number = "4242-4242-4242-4242"
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	receipt := &state.Field[any]{Name: "receipt", Owner: "billing"}
	schema := state.MustSchema(state.Team{"front": {"billing"}, "billing": nil}, card, receipt)
	type in struct {
		Card string `json:"card,omitempty"`
		Fail bool   `json:"fail,omitempty"`
	}
	pay := func(in in) (map[string]any, error) {
		if in.Fail {
			return nil, fmt.Errorf("wrapped: %w", &cardError{in.Card})
		}
		return map[string]any{"to": in.Card, "url": "https://x/?c=" + base64.StdEncoding.EncodeToString([]byte(in.Card)), in.Card: []any{1, "<" + in.Card + ">"}}, nil
	}
	typed := func(_ context.Context, in in) (map[string]any, error) { return pay(in) }
	raw := func(_ context.Context, args state.JSON) (state.JSON, error) {
		var in in
		_ = args.Decode(&in)
		out, err := pay(in)
		if err != nil {
			return "", err
		}
		return state.JSONOf(out)
	}
	const params = `{"properties":{"card":{"type":"string"},"fail":{"type":"boolean"}}}`
	tools := func(opts ...tool.Option) map[string]*tool.Tool {
		opts = append(opts, tool.To(receipt, "to"))
		from := append([]tool.Option{tool.From(card, "card")}, opts...)
		return map[string]*tool.Tool{
			"New": tool.Must(tool.New("pay", "", typed, from...)),
			"Raw": tool.Must(tool.Raw("pay", "", params, raw, from...)),
			"NewStateful": tool.Must(tool.NewStateful("pay", "", func(_ context.Context, st *state.State, in in) (map[string]any, error) {
				in.Card = card.GetOr(st, "") // not injected
				return pay(in)
			}, opts...)),
			"a new secret": tool.Must(tool.NewStateful("pay", "", func(_ context.Context, st *state.State, in in) (map[string]any, error) {
				if err := card.Set(st, number); err != nil {
					return nil, err
				}
				in.Card = number
				return pay(in)
			}, opts...)),
			"an old secret": tool.Must(tool.NewStateful("pay", "", func(_ context.Context, st *state.State, in in) (map[string]any, error) {
				in.Card = card.GetOr(st, "")
				if err := card.Set(st, "another-card"); err != nil {
					return nil, err
				}
				return pay(in)
			}, opts...)),
		}
	}
	for _, reveal := range []bool{false, true} {
		var opts []tool.Option
		if reveal {
			opts = append(opts, tool.Reveal())
		}
		for door, x := range tools(opts...) {
			for _, args := range []state.JSON{`{}`, `{"fail":true}`} {
				for _, way := range []string{"Call", "Run", "Step"} {
					st := state.New(schema)
					require.NoError(t, card.Set(st, number))
					if door == "a new secret" {
						_, err := card.Delete(st)
						require.NoError(t, err)
					}
					billing := st.As("billing")
					calls := []state.ToolCall{{ID: "1", Name: "pay", Input: args}}
					var shown string
					var err error
					switch way {
					case "Call":
						var out state.JSON
						out, err = x.Call(t.Context(), billing, args)
						shown = string(out)
					case "Run":
						r := must(tool.Run(t.Context(), billing, []*tool.Tool{x}, calls))[0]
						shown, err = string(r.Message.Raw()), r.Err
					case "Step":
						step := must(tool.BeginStep(t.Context(), billing, []*tool.Tool{x}, calls))
						r, notMade := step.Call(t.Context(), 0)
						require.NoError(t, notMade)
						require.Equal(t, []tool.Result{r}, step.End())
						shown, err = string(r.Message.Raw()), r.Err
					}
					if err != nil {
						shown += err.Error()
					}
					where := fmt.Sprint(door, " ", way, " ", reveal, ": ", shown)
					require.Equal(t, reveal, strings.Contains(shown, number), where)
					require.Equal(t, !reveal, strings.Contains(shown, "[SECRET]"), where)
					if args != `{}` {
						var behind *cardError
						require.ErrorAs(t, err, &behind)
						require.Equal(t, number, behind.card)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, any(number), receipt.GetOr(billing, nil), "what is written to a field is not masked")
					require.False(t, !reveal && strings.Contains(shown, base64.StdEncoding.EncodeToString([]byte(number))), where)
				}
			}
		}
	}
	// The handle may not read the card, so it cannot leak through it.
	st := state.New(schema)
	require.NoError(t, card.Set(st, number))
	_, err := tools()["New"].Call(t.Context(), st.As("front"), "")
	require.ErrorIs(t, err, state.ErrDenied)
}

// The model chooses the names of arguments, which may contain what it has seen
// elsewhere.
func TestBadArgumentsAreMasked(t *testing.T) {
	const number = "4242-4242-4242-4242"
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	require.NoError(t, card.Set(st, number))
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (int, error) { return 1, nil }))
	_, err := x.Call(t.Context(), st, `{"`+number+`":1}`)
	require.ErrorContains(t, err, `"[SECRET]": is unknown`)
}

// TestMaskedResultsAreJSON has results of which a mask takes numbers, names and
// parts of the syntax.
func TestMaskedResultsAreJSON(t *testing.T) {
	for _, secret := range []any{123456789, 1.5, true, "a,b", `":"`, `","b":"`, `{"a":`, "abcdef", []string{"name1", "name2"}, map[string]int{"name1": 987654321}, `\n`, "null"} {
		f := &state.Field[any]{Name: "secret", Secret: true}
		st := state.New(state.MustSchema(f))
		require.NoError(t, f.Set(st, secret))
		for _, result := range []state.JSON{
			`{"a":123456789,"b":1.5,"c":[987654321,null,true]}`, `123456789`, `"a,b"`, `{"a":"x","b":"y"}`, `{"name1":1,"name2":2}`, `[{"a":"abcdef"}]`, `null`, `"\n"`, `"\\n"`,
		} {
			x := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return result, nil }))
			out, err := x.Call(t.Context(), st, "")
			require.NoError(t, err)
			require.True(t, out.Valid(), "%v in %s: %s", secret, result, out)
			require.True(t, json.Valid([]byte(out)))
			r := must(tool.Run(t.Context(), st, []*tool.Tool{x}, []state.ToolCall{{Name: "x"}}))[0]
			require.Equal(t, out, r.Message.Content(), "%v in %s", secret, result)
		}
	}
}

func TestReadOnlyStatefulToolsCannotWrite(t *testing.T) {
	log := &state.Field[[]string]{Name: "log"}
	st := state.New(state.MustSchema(log))
	read := tool.Must(tool.NewStateful("read", "", func(ctx context.Context, st *state.State, _ struct{}) ([]string, error) {
		carried, _ := state.FromContext(ctx)
		return []string{"read"}, errors.Join(log.Set(st, []string{"x"}), log.Set(carried, []string{"x"}))
	}, tool.Annotate(tool.Annotations{ReadOnly: true}), tool.To(log, "")))
	_, err := read.Call(t.Context(), st, "")
	require.ErrorIs(t, err, state.ErrReadOnly)
	require.Zero(t, st.Version())
}

func TestAnnotationsAreThoseOfMCP(t *testing.T) {
	no := false
	x := tool.Must(tool.New("x", "", coreFunc, tool.Annotate(tool.Annotations{Title: "X", ReadOnly: true, Destructive: &no, Idempotent: true, OpenWorld: &no})))
	no = true
	*x.Annotations().OpenWorld = true
	data, err := json.Marshal(x.Annotations())
	require.NoError(t, err)
	require.JSONEq(t, `{"title":"X","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`, string(data))
	data, err = json.Marshal(tool.Must(tool.New("x", "", coreFunc)).Annotations())
	require.NoError(t, err)
	require.Equal(t, `{}`, string(data))
}

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

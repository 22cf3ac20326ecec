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

	"github.com/agentstate/state"
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
				in.Card = card.Or(st, "") // not injected
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
				in.Card = card.Or(st, "")
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
						step := must(tool.Begin(t.Context(), billing, []*tool.Tool{x}, calls))
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
					require.Equal(t, any(number), receipt.Or(billing, nil), "what is written to a field is not masked")
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

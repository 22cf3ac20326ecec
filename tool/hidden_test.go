package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// userSeen returns the user that decoders take from arguments, "" if none finds
// one: encoding/json, one that ignores case as mapstructure does, and one that
// also ignores _ and - as encoding/json/v2 can.
func userSeen(t require.TestingT, args state.JSON) []string {
	var in struct {
		User string `json:"user_id"`
	}
	_ = json.Unmarshal([]byte(args), &in)
	seen := []string{in.User}
	var members map[string]any
	require.NoError(t, json.Unmarshal([]byte(args), &members))
	without := strings.NewReplacer("_", "", "-", "")
	for name, v := range members {
		if strings.EqualFold(name, "user_id") || strings.EqualFold(without.Replace(name), "userid") {
			text, _ := v.(string)
			seen = append(seen, text)
		}
	}
	return seen
}

// injectingTools have the parameter user_id injected and take any other argument.
func injectingTools(user *state.Field[string], seen *[]string) map[string]*tool.Tool {
	raw := func(_ context.Context, args state.JSON) (state.JSON, error) {
		*seen = userSeen(panicT{}, args)
		return "", nil
	}
	fromMap := func(_ context.Context, args map[string]any) (bool, error) {
		text, err := state.JSONOf(args)
		*seen = userSeen(panicT{}, text)
		return true, err
	}
	declared := state.JSON(`{"type":"object","properties":{"query":{},"user_id":{"type":"string"}}}`)
	return map[string]*tool.Tool{
		"Raw":            tool.Must(tool.Raw("x", "", declared, raw, tool.From(user, "user_id"))),
		"Raw open":       tool.Must(tool.Raw("x", "", `{"additionalProperties":true}`, raw, tool.From(user, "user_id"))),
		"Raw of a type":  tool.Must(tool.Raw("x", "", `{"additionalProperties":{"type":"string"}}`, raw, tool.From(user, "user_id"))),
		"Raw by pattern": tool.Must(tool.Raw("x", "", `{"properties":{"user_id":{}},"patternProperties":{".*":{}},"additionalProperties":false}`, raw, tool.From(user, "user_id"))),
		"New map":        tool.Must(tool.New("x", "", fromMap, tool.From(user, "user_id"))),
		"stateful": tool.Must(tool.RawStateful("x", "", declared, func(ctx context.Context, _ *state.State, args state.JSON) (state.JSON, error) {
			return raw(ctx, args)
		}, tool.From(user, "user_id"))),
	}
}

// panicT makes a failed requirement a panic.
type panicT struct{}

func (panicT) Errorf(format string, args ...any) {}
func (panicT) FailNow()                          { panic("a requirement failed") }

// TestNoSpellingReachesAnInjectedParameter sends arguments that some decoder
// would take for the injected one, with the field set and unset.
func TestNoSpellingReachesAnInjectedParameter(t *testing.T) {
	user := &state.Field[string]{Name: "user"}
	var seen []string
	for name, x := range injectingTools(user, &seen) {
		for _, spelling := range []string{
			"user_id", "User_ID", "USER_ID", "userId", "userid", "user-id", "User-Id", "_user_id", "user__id", "user_id_",
			"u\u017fer_id", "U\u017fERID", "u\\u017fer_id", "\\u0075ser_id", "user_\u0131d", "user_\u0130d",
		} {
			for _, set := range []bool{true, false} {
				st := state.New(state.MustSchema(user))
				if set {
					require.NoError(t, user.Set(st, "alice"))
				}
				seen = nil
				_, err := x.Call(t.Context(), st, state.JSON(`{"query":"q","`+spelling+`":"mallory"}`))
				var bad *tool.ArgumentError
				require.ErrorAs(t, err, &bad, "%s: %s", name, spelling)
				require.ErrorContains(t, err, "is not an argument")
				require.Empty(t, seen, "the function was called")
			}
		}
		st := state.New(state.MustSchema(user))
		require.NoError(t, user.Set(st, "alice"))
		_, err := x.Call(t.Context(), st, `{"query":{"user_id":"an object inside"}}`)
		require.NoError(t, err)
		require.NotContains(t, seen, "mallory")
		require.Contains(t, seen, "alice")
	}
}

// FuzzInjected lets no argument of any name become the injected one.
func FuzzInjected(f *testing.F) {
	for _, name := range []string{"user_id", "User_ID", "u\u017fer_id", "user-id", "USERID", "query", "user", "\u212a", "", "user_id\x00", "uſerId"} {
		f.Add(name, true)
		f.Add(name, false)
	}
	user := &state.Field[string]{Name: "user"}
	var seen []string
	tools := injectingTools(user, &seen)
	f.Fuzz(func(t *testing.T, name string, set bool) {
		args, err := state.JSONOf(map[string]string{name: "mallory"})
		if err != nil {
			t.Skip("not a name")
		}
		for door, x := range tools {
			st := state.New(state.MustSchema(user))
			if set {
				require.NoError(t, user.Set(st, "alice"))
			}
			seen = nil
			_, err := x.Call(t.Context(), st, args)
			require.NotContains(t, seen, "mallory", door)
			if err == nil && set {
				require.Contains(t, seen, "alice", door)
			}
		}
	})
}

func TestInjectionNeedsAParameter(t *testing.T) {
	user := &state.Field[string]{Name: "user"}
	from := tool.From(user, "userid")
	for _, c := range []struct{ name, schema, want string }{
		{"a schema that is open by default", `{"type":"object","properties":{"user":{"type":"string"}}}`, `From: field "user", parameter "userid": the function has no such parameter`},
		{"no properties", `{}`, `no such parameter`},
		{"one letter wrong", `{"properties":{"user_id":{"type":"string"}},"required":["user_id"]}`, `the function has no such parameter, it is spelled "user_id"`},
		{"one letter wrong in an open schema", `{"properties":{"user_id":{}},"additionalProperties":true}`, `no such parameter, it is spelled "user_id"`},
		{"a schema that is closed", `{"additionalProperties":false}`, `no such parameter`},
		{"a pattern", `{"patternProperties":{"^user":{}},"additionalProperties":false}`, `no such parameter`},
		{"two that differ in case", `{"properties":{"userid":{},"UserId":{}}}`, `a decoder may take the parameter "UserId" for it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tool.Raw("x", "", state.JSON(c.schema), coreRaw, from)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, tool.ErrInvalidTool)
		})
	}
	for _, schema := range []state.JSON{`{"properties":{"userid":{}}}`, `{"required":["userid"]}`, `{"additionalProperties":true}`, `{"additionalProperties":{}}`} {
		x, err := tool.Raw("x", "", schema, coreRaw, from)
		require.NoError(t, err)
		require.NotContains(t, string(x.Schema()), "userid")
	}
	_, err := tool.New("x", "", func(context.Context, struct {
		A string `json:"userid"`
		B string `json:"user_id"`
	}) (int, error) {
		return 0, nil
	}, from)
	require.ErrorContains(t, err, `a decoder may take the parameter "user_id" for it`)
	_, err = tool.New("x", "", func(context.Context, map[string]any) (int, error) { return 0, nil }, from, tool.From(user, "UserID"))
	require.ErrorContains(t, err, "the parameter is injected twice")
}

// TestNoKeywordShowsAnInjectedParameter has schemas whose other keywords name
// the parameter user.
func TestNoKeywordShowsAnInjectedParameter(t *testing.T) {
	user := &state.Field[string]{Name: "name"}
	for _, c := range []struct{ name, rest, want string }{ // want is the rest of the schema shown, or the error
		{"required by others", `"dependentRequired":{"q":["user","team"]}`, `"dependentRequired":{"q":["team"]}`},
		{"required by others, as in older drafts", `"dependencies":{"q":["user"]}`, `"dependencies":{"q":[]}`},
		{"examples", `"examples":[{"q":"a","user":"u"},1],"default":{"user":"u"}`, `"examples":[{"q":"a"},1],"default":{}`},
		{"a value like the name", `"description":"user","title":"user","x-any":{"user":1}`, `"description":"user","title":"user","x-any":{"user":1}`},
		{"an object inside", `"properties":{"user":{},"q":{"properties":{"user":{}},"required":["user"]}}`, `"properties":{"q":{"properties":{"user":{}},"required":["user"]}}`},
		{"definitions that nothing refers to", `"$defs":{"a":{"required":["user"]}}`, `"$defs":{"a":{"required":["user"]}}`},
		{"malformed keywords", `"examples":1,"dependentRequired":[],"oneOf":{},"$ref":1,"if":1,"default":[]`, `"examples":1,"dependentRequired":[],"oneOf":{},"$ref":1,"if":1,"default":[]`},
		{"requires others", `"dependentRequired":{"user":["team"]}`, `$.dependentRequired speaks of the parameter "user"`},
		{"a schema for it", `"dependentSchemas":{"user":{}}`, `$.dependentSchemas speaks of`},
		{"a schema that depends", `"dependentSchemas":{"q":{"required":["user"]}}`, `$.dependentSchemas.q.required speaks of`},
		{"one of", `"oneOf":[{"required":["team"]},{"required":["user"]}]`, `$.oneOf[1].required speaks of`},
		{"any of", `"anyOf":[{"properties":{"user":{"const":"a"}}}]`, `$.anyOf[0].properties speaks of`},
		{"all of, deep", `"allOf":[{"not":{"anyOf":[true,{"required":["user"]}]}}]`, `$.allOf[0].not.anyOf[1].required speaks of`},
		{"if", `"if":{"required":["user"]},"then":{}`, `$.if.required speaks of`},
		{"then", `"if":{},"then":{"required":["user"]}`, `$.then.required speaks of`},
		{"else, in other case", `"if":{},"else":{"required":["User"]}`, `$.else.required speaks of the parameter "User"`},
		{"a reference", `"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/a~1b","required":["user"]}}`, `speaks of`},
		{"names", `"propertyNames":{"enum":["q","user"]}`, `$.propertyNames speaks of`},
		{"patterns", `"patternProperties":{"^user$":{}}`, `$.patternProperties speaks of`},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := `{"properties":{"user":{},"q":{}},` + c.rest + `}`
			shown := `{"properties":{"q":{}},` + c.want + `}`
			if strings.HasPrefix(c.rest, `"properties"`) {
				schema, shown = `{`+c.rest+`}`, `{`+c.want+`}`
			}
			x, err := tool.Raw("x", "", state.JSON(schema), coreRaw, tool.From(user, "user"))
			if strings.Contains(c.want, "speaks of") {
				require.ErrorContains(t, err, c.want)
				require.ErrorIs(t, err, tool.ErrInvalidTool)
				require.Nil(t, x)
				_, err = tool.Raw("x", "", state.JSON(schema), coreRaw)
				require.NoError(t, err, "nothing is injected")
				return
			}
			require.NoError(t, err)
			require.Equal(t, shown, string(x.Schema()))
		})
	}
}

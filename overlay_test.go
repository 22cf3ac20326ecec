package state_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove what values for one request do: every read of a
// handle has them, and nothing is written.

var (
	withUser  = &state.Field[string]{Name: "user", Read: state.Public, Write: state.Public}
	withToken = &state.Field[string]{Name: "token", Owner: "ann", Secret: true}
	withList  = &state.Field[[]int]{Name: "list", Read: state.Public, Write: state.Public}
	withOdd   = &state.Field[int]{Name: "odd", Validate: func(n int) error {
		if n%2 == 0 {
			return errRuleEven
		}
		return nil
	}}
	withSchema = state.MustSchema(withUser, withToken, withList, withOdd, state.AllowUndeclared, state.Team{"lead": {"ann", "ben"}})
)

func withRequest(t *testing.T, st *state.State, values map[string]any) *state.State {
	t.Helper()
	req, err := st.With(values)
	require.NoError(t, err)
	return req
}

func TestWithIsReadByEveryAccessor(t *testing.T) {
	st := state.New(withSchema)
	require.NoError(t, st.Patch(map[string]any{"user": "stored", "list": []int{1}, "key": "stored", "gone": 1, "token": "stored-token"}))
	before, version := ruleExport(t, st), st.Version()
	values := map[string]any{"user": "of the request", "list": []any{2, 3}, "key": "of the request", "new": 1, "gone": nil, "token": "tok-123456"}
	req := withRequest(t, st, values)
	values["user"] = "changed by the caller"

	check := func(name string, req *state.State) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "of the request", withUser.Or(req, ""))
			require.True(t, withToken.Has(req))
			require.Equal(t, 2, state.ListLen(req, withList))
			sum := 0
			for _, n := range state.ListItems(req, withList, 0) {
				sum += n
			}
			require.Equal(t, 5, sum)
			kv := req.KV()
			got, ok := kv.Get("key")
			require.True(t, ok)
			require.Equal(t, "of the request", got)
			require.False(t, kv.Has("gone"))
			require.Equal(t, []string{"key", "list", "new", "token", "user"}, kv.Keys())
			require.Equal(t, 5, kv.Len())
			all := kv.All()
			require.Len(t, all, 5)
			require.Equal(t, "of the request", all["user"])
			require.Equal(t, state.Masked{}, all["token"])
			n, err := state.GetAs[int](req, "new")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, "a [SECRET], [SECRET]", req.Redact("a tok-123456, stored-token"))
			require.Contains(t, req.Describe(), "of the request")
			require.NotContains(t, req.Describe(), "gone")
			for _, f := range req.Fields() {
				require.Equal(t, f.Name != "messages" && f.Name != "odd", f.Set, f.Name)
			}
			data, err := json.Marshal(req)
			require.NoError(t, err)
			require.Contains(t, string(data), "of the request")
			require.NotContains(t, string(data), "tok-")
			require.Contains(t, fmt.Sprintf("%+v", req), "of the request")
		})
	}
	check("itself", req)
	check("a fork", req.Fork())
	check("a snapshot", req.Snapshot())
	check("another cause", req.WithCause("x"))
	check("more of them", withRequest(t, withRequest(t, st, map[string]any{"user": "first", "list": []int{9}}), map[string]any{
		"user": "of the request", "list": []any{2, 3}, "key": "of the request", "new": 1, "gone": nil, "token": "tok-123456",
	}))
	require.NoError(t, req.Update(func(tx *state.State) error { check("a transaction", tx); return nil }))

	require.Equal(t, before, ruleExport(t, st))
	require.Equal(t, before, ruleExport(t, req), "Export has what is stored")
	require.Equal(t, version, req.Version())
	effects, err := req.Effects(st.Snapshot())
	require.NoError(t, err)
	require.Empty(t, effects)
	require.Equal(t, "stored", withUser.Or(st, ""))
}

// A value that was given may be in texts that were made before it was given
// anew.
func TestEverySecretThatWasGivenIsMasked(t *testing.T) {
	st := state.New(withSchema)
	require.NoError(t, withToken.Set(st, "tok-stored"))
	first := withRequest(t, st, map[string]any{"token": "tok-first", "user": "u"})
	second := withRequest(t, first, map[string]any{"token": "tok-second"})
	unset := withRequest(t, second, map[string]any{"token": nil})
	again := withRequest(t, unset, map[string]any{"token": "tok-again"})
	const text = "tok-stored tok-first tok-second tok-again"
	for _, tt := range []struct {
		name string
		st   *state.State
		want string
	}{
		{"none given", st, "[SECRET] tok-first tok-second tok-again"},
		{"given once", first, "[SECRET] [SECRET] tok-second tok-again"},
		{"given anew", second, "[SECRET] [SECRET] [SECRET] tok-again"},
		{"unset", unset, "[SECRET] [SECRET] [SECRET] tok-again"},
		{"and given again", again, "[SECRET] [SECRET] [SECRET] [SECRET]"},
		{"a fork", again.Fork(), "[SECRET] [SECRET] [SECRET] [SECRET]"},
		{"a snapshot", again.Snapshot(), "[SECRET] [SECRET] [SECRET] [SECRET]"},
		{"its owner", again.As("ann"), "[SECRET] [SECRET] [SECRET] [SECRET]"},
		{"an agent that may not read it", again.As("ben"), text},
	} {
		require.Equal(t, tt.want, tt.st.Redact(text), tt.name)
	}
}

func TestNoWriteIncludesTheValuesOfWith(t *testing.T) {
	st := state.New(withSchema)
	require.NoError(t, withUser.Set(st, "stored"))
	req := withRequest(t, st, map[string]any{"user": "of the request", "key": 1})
	require.NoError(t, withList.Set(req, []int{1}))
	f := req.Fork()
	require.NoError(t, withList.Set(f, []int{len(withUser.Or(f, ""))}))
	require.NoError(t, req.Join(f))
	require.NoError(t, req.Update(func(tx *state.State) error { return tx.KV().Set("said", withUser.Or(tx, "")) }))
	require.Equal(t, map[string]any{"user": "stored", "list": []int{1, 14}, "said": "of the request"}, st.KV().All())
	require.NoError(t, req.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("hi")}}))
	require.Equal(t, 1, st.History().Len())

	require.NoError(t, withUser.Set(st, "stored later"))
	require.Equal(t, "of the request", withUser.Or(req, ""), "it hides what is written meanwhile")
	require.NoError(t, st.Revert(req.Snapshot()))
	require.Equal(t, "stored later", withUser.Or(st, ""))

	ruleUnchanged(t, st, func() {
		for name, err := range map[string]error{
			"Set":     withUser.Set(req, "x"),
			"Replace": withUser.Replace(req, "x"),
			"Update":  withUser.Update(req, func(string) (string, error) { return "x", nil }),
			"KV.Set":  req.KV().Set("key", 2),
			"Patch":   req.Patch(map[string]any{"key": 2, "list": []int{}}),
			"in tx":   req.Update(func(tx *state.State) error { return withUser.Set(tx, "x") }),
			"in fork": withUser.Set(req.Fork(), "x"),
			"bound":   withUser.Set(req.As("ben"), "x"),
		} {
			require.ErrorIs(t, err, state.ErrReadOnly, name)
			require.NotContains(t, err.Error(), "of the request")
		}
		_, err := withUser.Delete(req)
		require.ErrorIs(t, err, state.ErrReadOnly)
		require.ErrorContains(t, err, `"user"`)
	})
}

func TestWithRefusesWhatPatchRefuses(t *testing.T) {
	st := state.New(withSchema)
	for name, tt := range map[string]struct {
		st     *state.State
		values map[string]any
		want   error
	}{
		"type":         {st, map[string]any{"user": []int{1}}, state.ErrWrongType},
		"validation":   {st, map[string]any{"odd": 2}, errRuleEven},
		"name":         {st, map[string]any{"a\nb": 2}, state.ErrWrongType},
		"rights":       {st.As("ben"), map[string]any{"odd": 1}, state.ErrDenied},
		"stranger":     {st.As("x"), map[string]any{"key": 1}, state.ErrDenied},
		"conversation": {st, map[string]any{"messages": []any{}}, state.ErrInvalid},
		"unknown":      {state.New(aclSchema(t)), map[string]any{"pubic": 1}, state.ErrUnknownField},
	} {
		req, err := tt.st.With(tt.values)
		require.ErrorIs(t, err, tt.want, name)
		require.Nil(t, req)
	}
	_, err := st.With(map[string]any{"odd": 2, "user": 1i})
	require.ErrorContains(t, err, `"odd"`)
	require.ErrorContains(t, err, `"user"`)

	req := withRequest(t, st, map[string]any{"token": "tok-123456"})
	require.False(t, withToken.Has(req.As("ben")), "rights are those of the field")
	require.NotContains(t, fmt.Sprintf("%v %+v", req, req.As("ben").KV().All()), "tok-")
}

func TestWithInATransactionDependsOnWhatIsRead(t *testing.T) {
	st := state.New(withSchema)
	runs := 0
	require.NoError(t, withRequest(t, st, map[string]any{"user": "u"}).Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, withUser.Set(st, "other"))
		}
		return tx.KV().Set("said", withUser.Or(tx, ""))
	}))
	require.Equal(t, 1, runs, "the stored value was not read")
}

func TestEndRunDoesNotDeleteBehindAGivenValue(t *testing.T) {
	temp := &state.Field[string]{Name: "temp", Ephemeral: true}
	st := state.New(state.MustSchema(temp))
	require.NoError(t, temp.Set(st, "stored"))
	req := withRequest(t, st, map[string]any{"temp": "given"})
	require.ErrorIs(t, req.EndRun(), state.ErrReadOnly)
	require.Equal(t, "stored", temp.Or(st, ""))
	require.NoError(t, st.EndRun())
	require.False(t, temp.Has(st))
}

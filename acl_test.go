package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove the rules of access: who may read, write and list
// each field through every accessor, that no derived handle has more rights than
// the one it comes from, and that versions, journals and errors tell an agent
// nothing about fields that it may not read. noninterference_test.go tries the
// last with random programs.

// aclField is a list field that one rule of access is tried on, with the agents
// that the rule lets in.
type aclField struct {
	field            *state.Field[[]string]
	readers, writers []string
}

// The team of the tests: ann owns what has an owner, ben is admitted by name,
// cyd is another member; mallory is a stranger.
var (
	aclTeam    = state.Team{"lead": {"ann", "ben", "cyd"}}
	aclMembers = []string{"ann", "ben", "cyd", "lead"}
	aclNobody  = []string{}

	aclFields = []aclField{
		{field: &state.Field[[]string]{Name: "private_owned", Owner: "ann"}, readers: []string{"ann"}, writers: []string{"ann"}},
		{field: &state.Field[[]string]{Name: "private_host"}, readers: aclNobody, writers: aclNobody},
		{field: &state.Field[[]string]{Name: "public", Owner: "ann", Read: state.Public, Write: state.Public}, readers: aclMembers, writers: aclMembers},
		{field: &state.Field[[]string]{Name: "public_host", Read: state.Public}, readers: aclMembers, writers: aclNobody},
		{field: &state.Field[[]string]{Name: "notice", Owner: "ann", Read: state.Public}, readers: aclMembers, writers: []string{"ann"}},
		{field: &state.Field[[]string]{Name: "only", Owner: "ann", Read: state.Only("ben"), Write: state.Only("ben")}, readers: []string{"ann", "ben"}, writers: []string{"ann", "ben"}},
		{field: &state.Field[[]string]{Name: "only_read", Owner: "ann", Read: state.Only("ben")}, readers: []string{"ann", "ben"}, writers: []string{"ann"}},
		{field: &state.Field[[]string]{Name: "only_host", Read: state.Only("ben", "cyd"), Write: state.Only("ben")}, readers: []string{"ben", "cyd"}, writers: []string{"ben"}},
	}
)

func aclSchema(t testing.TB, more ...state.Part) *state.Schema {
	parts := append([]state.Part{aclTeam}, more...)
	for _, f := range aclFields {
		parts = append(parts, f.field)
	}
	schema, err := state.NewSchema(parts...)
	require.NoError(t, err)
	return schema
}

// aclState returns a state in which all fields of the schema are set.
func aclState(t testing.TB, more ...state.Part) *state.State {
	st := state.New(aclSchema(t, more...))
	for _, f := range aclFields {
		require.NoError(t, f.field.Set(st, []string{"v"}))
	}
	return st
}

// aclRole is a handle and what it may do.
type aclRole struct {
	name string
	as   []string // the names given to As, one after the other
}

var aclRoles = []aclRole{
	{"host", nil},
	{"owner", []string{"ann"}},
	{"admitted", []string{"ben"}},
	{"other member", []string{"cyd"}},
	{"stranger", []string{"mallory"}},
	{"nobody", []string{""}},
	{"owner as another", []string{"ann", "ben"}},
	{"another as owner", []string{"ben", "ann"}},
	{"stranger as owner", []string{"mallory", "ann"}},
}

func (r aclRole) of(st *state.State) *state.State {
	for _, agent := range r.as {
		st = st.As(agent)
	}
	return st
}

// among reports whether every name of the role is among agents: the naive model
// of narrowing.
func (r aclRole) among(agents []string) bool {
	for _, agent := range r.as {
		if !slices.Contains(agents, agent) {
			return false
		}
	}
	return true
}

// aclReads are the accessors that give a value, or say that there is one. They
// report whether they did, and the error if the accessor has one.
var aclReads = []struct {
	name  string
	loud  bool // says ErrDenied instead of behaving as if the field was unset
	reads func(st *state.State, f *state.Field[[]string]) (bool, error)
}{
	{"Field.Get", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, err := f.Get(st)
		return len(v) > 0, err
	}},
	{"Field.Or", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		return f.GetOr(st, []string{"default"})[0] == "v", nil
	}},
	{"Field.Has", false, func(st *state.State, f *state.Field[[]string]) (bool, error) { return f.Has(st), nil }},
	{"KV.Get", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, ok := st.KV().Get(f.Name)
		if !ok && v != nil {
			return true, errors.New("an unset field has a value")
		}
		return ok, nil
	}},
	{"KV.Has", false, func(st *state.State, f *state.Field[[]string]) (bool, error) { return st.KV().Has(f.Name), nil }},
	{"KV.All", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		_, ok := st.KV().All()[f.Name]
		return ok, nil
	}},
	{"KV.Keys", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		return slices.Contains(st.KV().Keys(), f.Name), nil
	}},
	{"Get", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, err := state.GetAs[[]string](st, f.Name)
		return len(v) > 0, err
	}},
	{"Items", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		for range state.ListItems(st, f, 0) {
			return true, nil
		}
		return false, nil
	}},
	{"Len", false, func(st *state.State, f *state.Field[[]string]) (bool, error) { return state.ListLen(st, f) > 0, nil }},
	{"Fields", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		return slices.ContainsFunc(st.Fields(), func(i state.FieldInfo) bool { return i.Name == f.Name }), nil
	}},
	{"Describe", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		return strings.Contains(st.Describe(), "- "+f.Name+" ("), nil
	}},
	{"%+v", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		return strings.Contains(fmt.Sprintf("%+v", st), "- "+f.Name+" ("), nil
	}},
	{"MarshalJSON", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		data, err := json.Marshal(st)
		return bytes.Contains(data, []byte(`"`+f.Name+`"`)), err
	}},
	{"Changes", false, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		for c, err := range st.Changes(0) {
			if err != nil || c.Field == f.Name {
				return true, err
			}
		}
		return false, nil
	}},
	{"Watch", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		for c, err := range st.Snapshot().Watch(context.Background(), 0, f.Name) {
			return c.Field == f.Name, err
		}
		return false, nil
	}},
	{"Fork", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, err := f.Get(st.Fork())
		return len(v) > 0, err
	}},
	{"Snapshot", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, err := f.Get(st.Snapshot())
		return len(v) > 0, err
	}},
	{"FromContext", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		st, _ = state.FromContext(state.NewContext(context.Background(), st))
		v, err := f.Get(st)
		return len(v) > 0, err
	}},
	{"WithCause", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		v, err := f.Get(st.WithCause("call_1"))
		return len(v) > 0, err
	}},
	{"Update", true, func(st *state.State, f *state.Field[[]string]) (bool, error) {
		var v []string
		err := st.Update(func(tx *state.State) (err error) {
			v, err = f.Get(tx)
			return err
		})
		return len(v) > 0, err
	}},
}

// aclWrites are the accessors that write a value.
var aclWrites = []struct {
	name   string
	writes func(st *state.State, f *state.Field[[]string]) error
}{
	{"Field.Set", func(st *state.State, f *state.Field[[]string]) error { return f.Set(st, []string{"w"}) }},
	{"Field.SetWith", func(st *state.State, f *state.Field[[]string]) error {
		return f.SetWith(st, []string{"w"}, state.Union[[]string]())
	}},
	{"Field.Replace", func(st *state.State, f *state.Field[[]string]) error { return f.Replace(st, []string{"w"}) }},
	{"Field.Update", func(st *state.State, f *state.Field[[]string]) error {
		return f.Update(st, func(v []string) ([]string, error) { return append(v, "w"), nil })
	}},
	{"Field.Delete", func(st *state.State, f *state.Field[[]string]) error {
		_, err := f.Delete(st)
		return err
	}},
	{"KV.Set", func(st *state.State, f *state.Field[[]string]) error { return st.KV().Set(f.Name, "w") }},
	{"KV.SetWith", func(st *state.State, f *state.Field[[]string]) error {
		return st.KV().SetWith(f.Name, "w", state.Append[[]string]())
	}},
	{"KV.Replace", func(st *state.State, f *state.Field[[]string]) error { return st.KV().Replace(f.Name, "w") }},
	{"KV.Delete", func(st *state.State, f *state.Field[[]string]) error {
		_, err := st.KV().Delete(f.Name)
		return err
	}},
	{"Patch", func(st *state.State, f *state.Field[[]string]) error {
		return st.Patch(map[string]any{f.Name: []string{"w"}})
	}},
	{"Patch nil", func(st *state.State, f *state.Field[[]string]) error { return st.Patch(map[string]any{f.Name: nil}) }},
	{"Update", func(st *state.State, f *state.Field[[]string]) error {
		return st.Update(func(tx *state.State) error { return f.Set(tx, []string{"w"}) })
	}},
	{"Fork and Join", func(st *state.State, f *state.Field[[]string]) error {
		branch := st.Fork()
		if err := f.Set(branch, []string{"w"}); err != nil {
			return err
		}
		return st.Join(branch)
	}},
}

func TestACLEveryAccessorKeepsTheScopes(t *testing.T) {
	for _, role := range aclRoles {
		for _, f := range aclFields {
			for _, accessor := range aclReads {
				t.Run(role.name+"/"+f.field.Name+"/"+accessor.name, func(t *testing.T) {
					st := role.of(aclState(t))
					got, err := accessor.reads(st, f.field)
					require.Equal(t, role.among(f.readers), got)
					if got || !accessor.loud {
						require.NoError(t, err)
						return
					}
					var denied *state.AccessError
					require.ErrorAs(t, err, &denied)
					require.Equal(t, f.field.Name, denied.Field)
					require.Equal(t, st.Agent(), denied.Agent)
				})
			}
			for _, accessor := range aclWrites {
				t.Run(role.name+"/"+f.field.Name+"/"+accessor.name, func(t *testing.T) {
					st := aclState(t)
					before, version := aclExport(t, st), st.Version()
					err := accessor.writes(role.of(st), f.field)
					if role.among(f.writers) {
						require.NoError(t, err)
						require.Equal(t, version+1, st.Version())
						require.NotEqual(t, before, aclExport(t, st))
						return
					}
					var denied *state.AccessError
					require.ErrorAs(t, err, &denied)
					require.Equal(t, f.field.Name, denied.Field)
					require.Equal(t, before, aclExport(t, st))
					require.Equal(t, version, st.Version())
				})
			}
		}
	}
}

func aclExport(t testing.TB, st *state.State) string {
	data, err := st.Export()
	require.NoError(t, err)
	return string(data)
}

func TestACLLenAndChangesAreThoseThatTheHandleMayRead(t *testing.T) {
	for _, role := range aclRoles {
		want := 0
		for _, f := range aclFields {
			if role.among(f.readers) {
				want++
			}
		}
		st := role.of(aclState(t))
		require.Equal(t, want, st.KV().Len(), role.name)
		require.Len(t, aclChanges(t, st, 0), want, role.name)
	}
}

func aclChanges(t testing.TB, st *state.State, since uint64) []state.Change {
	var all []state.Change
	for c, err := range st.Changes(since) {
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// An agent that may not read the messages sees what others do to its results,
// and nothing of what they do to those of other agents.
func TestACLChangesShowWhatBecomesOfTheOwnResults(t *testing.T) {
	reset := func(st *state.State) error { return st.History().Reset(nil) }
	pop := func(st *state.State) error {
		_, _, err := st.History().Pop()
		return err
	}
	inBranch := func(op func(*state.State) error) func(*state.State) error {
		return func(st *state.State) error {
			branch := st.Fork()
			return errors.Join(op(branch), st.Join(branch))
		}
	}
	for _, tt := range []struct {
		name string
		op   func(st *state.State) error
		ann  []state.Op // the first result is of ann, the second of cyd
		cyd  []state.Op
	}{
		{"reset", reset, []state.Op{state.OpReset}, []state.Op{state.OpReset}},
		{"reset in a transaction", func(st *state.State) error { return st.Update(reset) }, []state.Op{state.OpReset}, []state.Op{state.OpReset}},
		{"reset in a branch", inBranch(reset), []state.Op{state.OpReset}, []state.Op{state.OpReset}},
		{"revert", func(st *state.State) error {
			past, err := st.At(0)
			return errors.Join(err, st.Revert(past))
		}, []state.Op{state.OpRevert}, []state.Op{state.OpRevert}},
		{"pop", pop, nil, []state.Op{state.OpPop}},
		{"pop in a transaction", func(st *state.State) error { return st.Update(pop) }, nil, []state.Op{state.OpPop}},
		{"pop in a branch", inBranch(pop), nil, []state.Op{state.OpPop}},
		{"append and pop in a branch", inBranch(func(st *state.State) error {
			return errors.Join(st.As("ann").History().Append(aclResult("", "x")), pop(st), pop(st))
		}), []state.Op{state.OpPop}, []state.Op{state.OpPop}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(state.MustSchema(aclTeam, aclTalk()))
			require.NoError(t, st.As("ann").History().Append(aclResult("", "a")))
			require.NoError(t, st.As("cyd").History().Append(aclResult("", "c")))
			since := st.Version()
			require.NoError(t, tt.op(st))
			for agent, want := range map[string][]state.Op{"ann": tt.ann, "cyd": tt.cyd, "mallory": nil} {
				var got []state.Op
				for _, c := range aclChanges(t, st.As(agent), since) {
					got = append(got, c.Op)
				}
				require.Equal(t, want, got, agent)
			}
		})
	}
}

func TestACLAsOfNobodyAndOfStrangersHasNoRights(t *testing.T) {
	for _, agent := range []string{"", "mallory"} {
		st := aclState(t, state.AllowUndeclared)
		require.NoError(t, st.KV().Set("note", "x"))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hi")}))
		require.NoError(t, st.History().Append(state.InferenceResult{Agent: "ann"}))
		none := st.As(agent)
		require.ErrorIs(t, none.As("ann").History().Append(state.InferenceResult{}), state.ErrDenied)
		require.Empty(t, none.KV().All())
		require.Empty(t, none.KV().Keys())
		require.Empty(t, none.Fields())
		require.Empty(t, none.Describe())
		require.Zero(t, none.History().Len())
		require.Empty(t, aclChanges(t, none, 0))
		require.ErrorIs(t, none.KV().Set("note", "y"), state.ErrDenied)
		require.ErrorIs(t, none.KV().Set("another", "y"), state.ErrDenied)
		require.ErrorIs(t, state.Messages.Set(none, nil), state.ErrDenied)
		require.ErrorIs(t, none.History().Append(state.InferenceResult{}), state.ErrDenied)
		require.False(t, none.KV().Has("note"))
		_, err := state.GetAs[string](none, "note")
		require.ErrorIs(t, err, state.ErrDenied)
		_, err = state.GetAs[string](none, "never set")
		require.ErrorIs(t, err, state.ErrDenied, "that a key is unset is not told either")
	}
}

func TestACLWithoutATeamEveryFieldIsPublic(t *testing.T) {
	f := &state.Field[string]{Name: "f"}
	st := state.New(state.MustSchema(f))
	require.NoError(t, f.Set(st.As("anybody"), "x"))
	require.Equal(t, "x", f.GetOr(st.As("somebody"), ""))
	require.EqualValues(t, 1, st.As("somebody").Version())
	require.ErrorIs(t, f.Set(st.As(""), "y"), state.ErrDenied)
	require.False(t, f.Has(st.As("")))
}

func TestACLUndeclaredKeysArePublicToTheTeam(t *testing.T) {
	st := aclState(t, state.AllowUndeclared)
	require.NoError(t, st.As("cyd").KV().Set("note", "x"))
	v, ok := st.As("ann").KV().Get("note")
	require.True(t, ok)
	require.Equal(t, "x", v)
	require.False(t, st.As("mallory").KV().Has("note"))
}

// A write that is denied and wrong in every other way too must not show that the
// rest was looked at.
func TestACLRightsAreCheckedBeforeTypeLimitValidationAndHandler(t *testing.T) {
	asked := false
	f := &state.Field[[]int]{
		Name: "strict", Owner: "ann", Read: state.Public, MaxBytes: 10,
		Validate: func([]int) error { asked = true; return errors.New("no") },
		Handler: state.NewHandler("h", func([]int, bool, []int) ([]int, error) {
			asked = true
			return nil, errors.New("no")
		}),
	}
	st := aclState(t, f, state.Limits{Depth: 2, Keys: len(aclFields)})
	long := slices.Repeat([]int{1}, 1000)
	ben := st.As("ben")
	for name, err := range map[string]error{
		"type":          ben.KV().Set("strict", "not a number"),
		"type, replace": ben.KV().Replace("strict", make(chan int)),
		"nil":           ben.KV().Set("strict", nil),
		"masked":        ben.KV().Set("strict", state.Masked{}),
		"depth":         ben.KV().Set("strict", []any{[]any{[]any{[]any{}}}}),
		"limit":         f.Set(ben, long),
		"validation":    f.Replace(ben, []int{1}),
		"handler":       f.Set(ben, []int{1}),
		"other handler": ben.KV().SetWith("strict", 1, state.Sum[float64]()),
		"function": f.Update(ben, func([]int) ([]int, error) {
			asked = true
			return nil, errors.New("no")
		}),
		"patch":     ben.Patch(map[string]any{"strict": "x"}),
		"snapshot":  f.Set(ben.Snapshot(), []int{1}),
		"pair list": ben.Patch(map[string]any{"strict": "x", "notice": 3}),
	} {
		require.ErrorIs(t, err, state.ErrDenied, name)
		require.NotErrorIs(t, err, state.ErrWrongType, name)
		require.NotErrorIs(t, err, state.ErrLimitExceeded, name)
		require.False(t, asked, name)
	}
}

func TestACLPatchReportsEveryDeniedFieldAndWritesNone(t *testing.T) {
	st := aclState(t)
	before := aclExport(t, st)
	err := st.As("ben").Patch(map[string]any{"only": []string{"w"}, "notice": []string{"w"}, "private_owned": 7, "public": []string{"w"}})
	require.ErrorContains(t, err, `"notice"`)
	require.ErrorContains(t, err, `"private_owned"`)
	require.NotContains(t, err.Error(), `"only"`)
	require.Equal(t, before, aclExport(t, st))
}

func TestACLAccessErrorIsErrDeniedAndPermission(t *testing.T) {
	st := aclState(t)
	_, err := aclFields[1].field.Get(st.As("ann"))
	require.ErrorIs(t, err, state.ErrDenied)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.EqualError(t, err, `state: read "private_host": access denied to agent "ann"`)
}

func TestACLScopesThatFitATeam(t *testing.T) {
	for _, fine := range []*state.Field[string]{
		{Name: "f", Owner: "a", Write: state.Private, Read: state.Only("b")},
		{Name: "f", Owner: "a", Write: state.Only("a", "b"), Read: state.Only("b")}, // the owner reads
		{Name: "f", Write: state.Public, Read: state.Only("a", "b")},                // the whole team
		{Name: "f", Read: state.Only()},
	} {
		_, err := state.NewSchema(state.Team{"a": {"b"}}, fine)
		require.NoError(t, err)
	}
}

func TestACLAtRevertAndExportAreTheHosts(t *testing.T) {
	st := aclState(t)
	snapshot := st.Snapshot()
	for _, role := range aclRoles[1:] {
		bound := role.of(st)
		_, err := bound.Export()
		require.ErrorIs(t, err, state.ErrDenied)
		for _, version := range []uint64{0, 1, 1 << 60} {
			_, err = bound.At(version)
			require.ErrorIs(t, err, state.ErrDenied)
		}
		require.ErrorIs(t, bound.Revert(snapshot), state.ErrDenied)
		require.ErrorIs(t, st.Revert(role.of(snapshot)), state.ErrDenied)
		require.ErrorIs(t, bound.Update(func(tx *state.State) error { return tx.Revert(snapshot) }), state.ErrDenied)
		_, err = bound.Fork().Export()
		require.ErrorIs(t, err, state.ErrDenied)
	}
}

func TestACLEndRunNeedsTheRightToEveryEphemeralField(t *testing.T) {
	mine := &state.Field[string]{Name: "mine", Owner: "ann", Read: state.Public, Ephemeral: true}
	theirs := &state.Field[string]{Name: "theirs", Owner: "ben", Ephemeral: true}
	for _, set := range []bool{false, true} {
		st := aclState(t, mine, theirs)
		require.NoError(t, mine.Set(st, "m"))
		if set {
			require.NoError(t, theirs.Set(st, "t"))
		}
		require.ErrorIs(t, st.As("ann").EndRun(), state.ErrDenied, "whether it is set does not matter")
		require.True(t, mine.Has(st))
		require.NoError(t, st.EndRun())
		require.False(t, mine.Has(st))
		require.False(t, theirs.Has(st))
	}
	st := aclState(t, mine)
	require.NoError(t, mine.Set(st, "m"))
	require.NoError(t, st.As("ann").EndRun())
	require.False(t, mine.Has(st))
}

// History. aclTalk hides the conversation from all but ben, who leads it.

func aclTalk() *state.Field[[]state.Message] {
	return &state.Field[[]state.Message]{Name: "messages", Owner: "ben", Read: state.Only("lead")}
}

func aclResult(agent, text string) state.InferenceResult {
	return state.InferenceResult{Agent: agent, Input: text, Output: []state.Message{state.AssistantText(text)}, CreatedAt: time.Unix(1, 0)}
}

func aclInputs(st *state.State) []string {
	inputs := []string{}
	for _, r := range st.History().Results() {
		inputs = append(inputs, r.Input)
	}
	return inputs
}

func TestACLResultsFollowTheScopeOfMessages(t *testing.T) {
	st := aclState(t, aclTalk())
	for _, agent := range []string{"ann", "ben", "ann", "cyd"} {
		require.NoError(t, st.As(agent).History().Append(aclResult("", "by "+agent)))
	}
	require.NoError(t, st.History().Append(aclResult("ann", "by the host for ann")))
	all := []string{"by ann", "by ben", "by ann", "by cyd", "by the host for ann"}
	for _, tt := range []struct {
		as   []string
		want []string
	}{
		{nil, all},
		{[]string{"ben"}, all},
		{[]string{"lead"}, all},
		{[]string{"ben", "lead"}, all},
		{[]string{"ann"}, []string{"by ann", "by ann", "by the host for ann"}},
		{[]string{"cyd"}, []string{"by cyd"}},
		{[]string{"ben", "cyd"}, []string{"by cyd"}},
		{[]string{"ann", "cyd"}, []string{}},
		{[]string{"mallory"}, []string{}},
		{[]string{""}, []string{}},
	} {
		h := aclRole{as: tt.as}.of(st).History()
		require.Equal(t, len(tt.want), h.Len(), "%q", tt.as)
		require.Equal(t, tt.want, aclInputs(aclRole{as: tt.as}.of(st)), "%q", tt.as)
		require.Len(t, h.Format(nil), len(tt.want))
		var walked []string
		for i, r := range h.All() {
			require.Equal(t, len(walked), i)
			walked = append(walked, r.Input)
			at, ok := h.At(i)
			require.True(t, ok)
			require.Equal(t, r.Input, at.Input)
		}
		require.Equal(t, tt.want, append([]string{}, walked...))
		_, ok := h.At(len(tt.want))
		require.False(t, ok)
		last, ok := h.Last()
		require.Equal(t, len(tt.want) > 0, ok)
		if ok {
			require.Equal(t, tt.want[len(tt.want)-1], last.Input)
		}
	}
	require.Equal(t, 2, state.ListLen(st, aclTalk()), "only what ben and the host appended")
}

func TestACLWhoMayNotWriteMessagesAppendsTheResultOnly(t *testing.T) {
	for _, messages := range []*state.Field[[]state.Message]{
		aclTalk(),
		{Name: "messages", Owner: "ben", Read: state.Public},
	} {
		st := aclState(t, messages)
		for _, agent := range []string{"ann", "lead"} {
			require.NoError(t, st.As(agent).History().Append(aclResult("", "x")))
		}
		require.NoError(t, st.As("ben").As("ann").History().Append(aclResult("", "x")))
		require.Equal(t, 3, st.History().Len())
		require.Zero(t, state.ListLen(st, messages))
		require.NoError(t, st.As("ben").History().Append(aclResult("", "x")))
		require.Equal(t, 1, state.ListLen(st, messages))
		_, _, err := st.As("ann").History().Pop()
		require.ErrorIs(t, err, state.ErrDenied)
		require.ErrorIs(t, st.As("ann").History().Reset(nil), state.ErrDenied)
		require.Equal(t, 4, st.History().Len())
	}
}

// Branches.

func TestACLABoundHandleJoinsOnlyBranchesItCouldHaveForked(t *testing.T) {
	public, only, private := aclFields[2].field, aclFields[5].field, aclFields[0].field
	set := func(f *state.Field[[]string]) func(*state.State) error {
		return func(st *state.State) error { return f.Set(st, []string{"w"}) }
	}
	key := func(st *state.State) error { return st.KV().Set("key", 1) }
	append := func(st *state.State) error { return st.History().Append(aclResult("", "x")) }
	as := func(names ...string) []string { return names }
	for _, tt := range []struct {
		name   string
		forker []string // the role that forks, and writes
		write  func(fork *state.State) error
		given  []string // the role of the branch's handle that is given to Join
		joiner []string // the role that joins
		denied bool
	}{
		{"the host joins its own", nil, set(private), nil, nil, false},
		{"the host joins what an agent holds", nil, set(private), as("ann"), nil, false},
		{"the host joins an agent's", as("ann"), set(private), nil, nil, false},
		{"an agent joins its own", as("ann"), set(private), nil, as("ann"), false},
		{"an agent joins its own by a narrower handle", as("ann"), set(public), as("cyd"), as("ann"), false},
		{"admitted", as("ben"), set(only), nil, as("ben"), false},
		{"a key", as("cyd"), key, nil, as("cyd"), false},
		{"own result", as("cyd"), append, nil, as("cyd"), false},
		{"a narrower fork", as("ann", "cyd"), set(public), nil, as("ann"), false},
		{"an agent joins none of the host's", nil, set(private), as("ann"), as("ann"), true},
		{"nor through a handle without rights", nil, set(public), as("mallory"), as("ann"), true},
		{"other rights are refused", as("ben"), set(only), nil, as("ann"), true},
		{"wider rights are refused", as("ann"), set(public), as("cyd"), as("ann", "cyd"), true},
		{"another's result", as("cyd", "ann"), append, nil, as("ann"), true},
		{"strangers join none of a member's", as("cyd"), key, as("mallory"), as("mallory"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := aclState(t, aclTalk(), state.AllowUndeclared)
			fork := aclRole{as: tt.forker}.of(st).Fork()
			require.NoError(t, tt.write(fork))
			before, version := aclExport(t, st), st.Version()
			err := aclRole{as: tt.joiner}.of(st).Join(aclRole{as: tt.given}.of(fork))
			if !tt.denied {
				require.NoError(t, err)
				require.NotEqual(t, before, aclExport(t, st))
				return
			}
			require.ErrorIs(t, err, state.ErrDenied)
			require.Equal(t, before, aclExport(t, st))
			require.Equal(t, version, st.Version())
			require.NoError(t, st.Join(fork), "a failed join leaves the branch usable")
		})
	}
	for name, more := range map[string]*state.Field[string]{
		"may write more": {Name: "more", Owner: "a", Read: state.Public},
		"may read more":  {Name: "more", Read: state.Only("a")},
	} {
		st := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, more))
		require.ErrorIs(t, st.As("b").Join(st.As("a").Fork()), state.ErrDenied, name)
		require.NoError(t, st.As("a").Join(st.As("b").Fork()), name)
	}
}

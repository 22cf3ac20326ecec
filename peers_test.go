package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// Each test here is named after what another library of agent state does, or
// what its users reported, and shows that it cannot happen in this one.

func TestPeersHaystackWritesIntoTheCallersInitialData(t *testing.T) {
	tags := []string{"a"}
	initial := map[string]any{"tags": tags, "meta": map[string]string{"k": "v"}}
	st := ruleNew(t, ruleSchema, initial)
	require.NoError(t, ruleTags.Set(st, []string{"b"}))
	require.NoError(t, ruleMeta.Set(st, map[string]string{"k": "w"}))
	require.Equal(t, map[string]any{"tags": []string{"a"}, "meta": map[string]string{"k": "v"}}, initial)
	tags[0] = "changed"
	require.Equal(t, []string{"a", "b"}, ruleTags.Or(st, nil))
}

func TestPeersHaystackDoesNotCheckInitialData(t *testing.T) {
	st := state.New(ruleSchema)
	require.ErrorIs(t, st.Patch(map[string]any{"count": "x"}), state.ErrWrongType)
	require.ErrorIs(t, st.Patch(map[string]any{"not in the schema": 1}), state.ErrUnknownField)
	require.Zero(t, st.KV().Len())
}

func TestPeersHaystackDoesNotCheckTypesOnSet(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"count": 1})
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.KV().Set("count", "x"), state.ErrWrongType) })
}

func TestPeersHaystackErrorsPrintTheWholeSchema(t *testing.T) {
	err := state.New(ruleSchema).KV().Set("tagz", 1)
	require.EqualError(t, err, `state: "tagz": unknown field; did you mean "tags"?`)
}

func TestPeersHaystackHandlersGetTheLiveValueAndStayHalfApplied(t *testing.T) {
	half := state.NewHandler("half", func(current []string, _ bool, _ []string) ([]string, error) {
		if len(current) > 0 {
			current[0] = "half applied"
		}
		return nil, errors.New("then it fails")
	})
	st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}})
	ruleUnchanged(t, st, func() { require.Error(t, ruleTags.SetWith(st, []string{"b"}, half)) })
}

func TestPeersHaystackStoresByReference(t *testing.T) {
	st := state.New(nil)
	v := map[string]any{"nested": []any{"a"}}
	require.NoError(t, st.KV().Set("key", v))
	v["nested"].([]any)[0] = "changed"
	got, _ := st.KV().Get("key")
	require.Equal(t, map[string]any{"nested": []any{"a"}}, got)
}

func TestPeersHaystackDataIsTheLiveMap(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}})
	ruleUnchanged(t, st, func() {
		all := st.KV().All()
		all["tags"].([]string)[0] = "changed"
		all["not in the schema"] = 1
	})
	require.False(t, st.KV().Has("not in the schema"))
}

func TestPeersHaystackLosesAppendsOfThreads(t *testing.T) {
	st := state.New(ruleSchema)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 400 {
				if err := ruleTags.Set(st, []string{fmt.Sprint(g, " ", i)}); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 8*400, state.Len(st, ruleTags))
	next := [8]int{}
	for _, tag := range state.Items(st, ruleTags, 0) {
		var g, i int
		_, err := fmt.Sscan(tag, &g, &i)
		require.NoError(t, err)
		require.Equal(t, next[g], i, "each goroutine's in order")
		next[g]++
	}
}

func TestPeersHaystackAppendsNoneToLists(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}})
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.KV().Set("tags", []any{nil}), state.ErrWrongType) })
	_ = st.KV().Set("tags", nil) // refused, or nothing appended
	require.Equal(t, []string{"a"}, ruleTags.Or(st, nil))
}

func TestPeersHaystackAppendsATupleAsOneElement(t *testing.T) {
	st := state.New(ruleSchema)
	require.NoError(t, st.KV().Set("tags", [2]string{"a", "b"}))
	require.NoError(t, st.KV().Set("tags", "cd"))
	require.Equal(t, []string{"a", "b", "cd"}, ruleTags.Or(st, nil))
}

func TestPeersHaystackCannotSaveOwnHandlers(t *testing.T) {
	f := &state.Field[int]{Name: "n", Handler: state.NewHandler("", func(c int, _ bool, u int) (int, error) { return c + u, nil })}
	schema := state.MustSchema(f)
	st := state.New(schema)
	require.NoError(t, f.Set(st, 1))
	back, err := state.Import(schema, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.NoError(t, f.Set(back, 2))
	require.Equal(t, 3, f.Or(back, 0))
}

func TestPeersHaystackDropsWhatItCannotSave(t *testing.T) {
	st := state.New(nil)
	ruleUnchanged(t, st, func() {
		var typeErr *state.TypeError
		require.ErrorAs(t, st.KV().Set("key", map[string]any{"a": []any{func() {}}}), &typeErr, "refused when written, not when saved")
		require.Equal(t, "$[…][0]", typeErr.Path, "langgraph#8606: the error names the path")
	})
}

func TestPeersHaystackTurnsIntKeysIntoStrings(t *testing.T) {
	f := &state.Field[map[int]string]{Name: "x"}
	schema := state.MustSchema(f)
	st := state.New(schema)
	require.NoError(t, f.Set(st, map[int]string{7: "a"}))
	back, err := state.Import(schema, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.Equal(t, map[int]string{7: "a"}, f.Or(back, nil))
}

func TestPeersHaystackPutsSecretsIntoErrors(t *testing.T) {
	const pin = "hunter2!"
	fail := func(v string) error { return fmt.Errorf("bad value %s", v) }
	secret := &state.Field[string]{Name: "pin", Secret: true, Validate: func(v string) error {
		if strings.HasPrefix(v, "x") {
			return fail(v)
		}
		return nil
	}, Handler: state.NewHandler("own", func(current string, present bool, update string) (string, error) {
		switch update {
		case "fail":
			return "", fail(current)
		case "panic":
			panic(fail(current))
		}
		return update, nil
	})}
	number := &state.Field[int]{Name: "number", Secret: true}
	st := state.New(state.MustSchema(secret, number))
	require.NoError(t, secret.Set(st, pin))
	for _, err := range []error{
		secret.Set(st, "fail"), secret.Set(st, "panic"), secret.Set(st, "x"+pin), st.KV().Set("number", pin), st.Patch(map[string]any{"number": pin, "pin": []string{pin}}),
		st.KV().Set("pin", map[string]any{"a": pin}),
	} {
		require.Error(t, err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), pin)
	}
}

func TestPeersAgentKitCloneDropsKeys(t *testing.T) {
	st := ruleNew(t, ruleOpen, map[string]any{"text": "a", "tags": []string{"x"}, "key": map[string]any{"nested": []any{"b"}}})
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	want := ruleExport(t, st)
	for name, clone := range map[string]*state.State{"Fork": st.Fork(), "Snapshot": st.Snapshot(), "Fork of Fork": st.Fork().Fork()} {
		require.Equal(t, want, ruleExport(t, clone), name)
	}
}

func TestPeersAgentKitKVAndDataDiverge(t *testing.T) {
	st := state.New(ruleSchema)
	require.NoError(t, ruleText.Set(st, "typed"))
	v, _ := st.KV().Get("text")
	require.Equal(t, "typed", v)
	require.NoError(t, st.KV().Set("text", "named"))
	require.Equal(t, "named", ruleText.Or(st, ""))
}

func TestPeersAgentKitGivesAnEmptyStateForAnotherShape(t *testing.T) {
	for _, text := range []string{`{"foo":"bar"}`, `{"data":{"foo":"bar"}}`, `{"format":1,"foo":"bar"}`} {
		_, err := state.Import(nil, []byte(text))
		require.Error(t, err, text)
	}
}

func TestPeersAgentKitLosesResultsAndIDsThroughJSON(t *testing.T) {
	st := ruleHistory(t, "1", "2")
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.Equal(t, "1 2", ruleIDs(back.History().Results()))
	require.Equal(t, state.Len(st, state.Messages), state.Len(back, state.Messages))
	view, err := json.Marshal(st)
	require.NoError(t, err)
	require.Error(t, json.Unmarshal(view, state.New(nil)), "and a view is not taken for the whole")
}

func TestPeersAgentKitDropsEqualResultsWithinASecond(t *testing.T) {
	st := state.New(nil)
	for range 2 {
		require.NoError(t, st.History().Append(ruleResult("same", "a")))
	}
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	for _, st := range []*state.State{st, back} {
		require.Equal(t, 2, st.History().Len())
		require.Equal(t, 6, state.Len(st, state.Messages), "agency-swarm#807: equal messages are no doubles")
	}
}

func TestPeersAgentKitStartsAgainAtZeroAfterReplay(t *testing.T) {
	st := ruleNew(t, ruleSchema, map[string]any{"count": 11})
	back, err := state.Import(ruleSchema, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.Equal(t, st.Version(), back.Version())
	require.Equal(t, 11, ruleCount.Or(back, 0))
}

// peersThread is what a database of its own holds for an AgentKit thread: the
// messages of the user, and the results of agents, in the order in which they
// came.
func peersThread() (results []state.InferenceResult, messages []state.Message) {
	for i, text := range []string{"Where is my order?", "And the other one?"} {
		call := state.ToolCall{ID: fmt.Sprint("call_", i), Name: "track", Input: `{}`}
		r := state.InferenceResult{
			ID: fmt.Sprint(i), Agent: "support", Raw: `{}`, CreatedAt: ruleResult("", "").CreatedAt,
			Prompt: []state.Message{state.SystemText("You are the support desk.")}, History: slices.Clone(append(messages, state.UserText(text))),
			Output:    []state.Message{state.ToolCalls(call)},
			ToolCalls: []state.ToolResultMessage{state.ToolResult(call, `"on its way"`)},
		}
		results = append(results, r)
		messages = append(messages, state.UserText(text), r.Output[0], r.ToolCalls[0])
	}
	return results, messages
}

func TestPeersAgentKitHydratesResultsWithoutTheConversation(t *testing.T) { // thread-012: setResults
	results, messages := peersThread()
	st := state.New(nil)
	require.NoError(t, st.History().Load(results, messages))
	require.Equal(t, results, st.History().Results())
	require.Equal(t, messages, state.Messages.Or(st, nil))
	require.Equal(t, uint64(1), st.Version())
	require.Empty(t, transcript.Check(state.Messages.Or(st, nil), transcript.Anthropic))
	require.Len(t, st.History().Format(nil), 4, "the messages of the user are in the conversation only")
}

func TestPeersAgentKitSavesOnlyTheNewResults(t *testing.T) { // appendResults
	results, messages := peersThread()
	st := state.New(nil)
	require.NoError(t, st.History().Load(results, messages))
	loaded := st.History().Len()
	require.Empty(t, st.History().From(loaded), "a run without a model call saves nothing")
	require.NoError(t, st.History().Append(ruleResult("new", "support")))
	require.Equal(t, "new", ruleIDs(st.History().From(loaded)))
}

func TestPeersAgentKitTakesTheClientsHistory(t *testing.T) { // client-authoritative threads
	results, messages := peersThread()
	st := state.New(nil)
	require.NoError(t, st.History().Load(results, messages))
	require.NoError(t, st.History().Load(results[:1], messages[:3]), "the client has deleted the last turn")
	require.Equal(t, "0", ruleIDs(st.History().Results()))
	require.Equal(t, messages[:3], state.Messages.Or(st, nil))
	require.NoError(t, st.History().Load(nil, messages), "a client that knows messages only")
	require.Zero(t, st.History().Len())
	require.Equal(t, messages, state.Messages.Or(st, nil))
}

func TestPeersAgentKitClearsTheThread(t *testing.T) {
	results, messages := peersThread()
	st := ruleNew(t, ruleSchema, map[string]any{"text": "kept"})
	require.NoError(t, st.History().Load(results, messages))
	require.NoError(t, st.History().Load(nil, nil))
	require.Zero(t, st.History().Len()+state.Len(st, state.Messages))
	require.Equal(t, "kept", ruleText.Or(st, ""))
}

func TestPeersAgentKitRecordsTitlesInTheConversation(t *testing.T) {
	results, messages := peersThread()
	st := state.New(nil)
	require.NoError(t, st.History().Load(results, messages))
	require.NoError(t, st.History().Push(state.InferenceResult{Agent: "title", Output: []state.Message{state.AssistantText("Two orders")}}))
	require.Equal(t, messages, state.Messages.Or(st, nil))
}

func TestPeersEinoLosesTheCallThatWaits(t *testing.T) { // a call waits for a person, and another one is answered
	calls := partCalls("look", "pay")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.Len(t, transcript.Pending(state.Messages.Or(back, nil)), 1)
	require.NoError(t, back.History().Answer(partDone(calls[1])))
	require.Equal(t, "[look pay] =look =pay", partSaid(back))
	require.Empty(t, transcript.Pending(state.Messages.Or(back, nil)))
}

func TestPeersLangGraphConflictsOnAnEcho(t *testing.T) { // langgraph#6446
	st := ruleNew(t, ruleSchema, map[string]any{"text": "parent", "count": 1})
	a, b := st.Fork(), st.Fork()
	for _, branch := range []*state.State{a, b} { // each hands back all that it was given
		require.NoError(t, branch.Patch(branch.KV().All()))
	}
	require.NoError(t, ruleText.Set(a, "new"))
	require.NoError(t, st.Join(a, b))
	require.Equal(t, "new", ruleText.Or(st, ""))
}

func TestPeersLangGraphDoublesTheParentsListInASubgraph(t *testing.T) { // langgraph#3648
	st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}, "cost": 1.0})
	branch := st.Fork()
	require.NoError(t, ruleTags.Set(branch, []string{"b"}))
	require.NoError(t, ruleCost.Set(branch, 1))
	require.NoError(t, st.Join(branch))
	require.Equal(t, []string{"a", "b"}, ruleTags.Or(st, nil))
	require.Equal(t, 2.0, ruleCost.Or(st, 0))
}

func TestPeersLangGraphHasNoWayToClearAList(t *testing.T) { // langchain docs#5585
	for name, clear := range map[string]func(*state.State) error{
		"Replace": func(st *state.State) error { return ruleTags.Replace(st, nil) },
		"Patch":   func(st *state.State) error { return st.Patch(map[string]any{"tags": []string{}}) },
		"Update": func(st *state.State) error {
			return ruleTags.Update(st, func([]string) ([]string, error) { return nil, nil })
		},
		"Delete": func(st *state.State) error { return ruleDeleteOnly(ruleTags, st) },
	} {
		st := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}})
		require.NoError(t, ruleTags.Set(st, []string{}), "Set appends nothing")
		require.Equal(t, 1, state.Len(st, ruleTags))
		require.NoError(t, clear(st), name)
		require.Zero(t, state.Len(st, ruleTags), name)
	}
}

func TestPeersInterpretValuesAsControl(t *testing.T) {
	values := map[string]any{
		"overwrite": map[string]any{"__overwrite__": []any{}}, "type": map[string]any{"type": "__overwrite__", "value": "x"},
		"remove": map[string]any{"id": "__remove_all__"}, "constructor": map[string]any{"lc": int64(1), "type": "constructor", "id": []any{"os", "system"}},
		"template": "{word} {{secrets.X}} ${HOME}", "mask": "[SECRET]", "format": map[string]any{"format": int64(1), "keys": []any{}},
		"__proto__": map[string]any{"x": true}, "app:name": "a", "user:name": "b", "temp:name": "c", "secret:name": "d",
	}
	st := ruleNew(t, nil, values)
	list := &state.Field[[]any]{Name: "list"}
	typed := state.New(state.MustSchema(list))
	for _, v := range values {
		require.NoError(t, list.Set(typed, []any{v}))
	}
	require.Equal(t, len(values), state.Len(typed, list), "all appended")
	require.NoError(t, st.EndRun())
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.Equal(t, values, back.KV().All())
}

func TestPeersInterpretMessageIDs(t *testing.T) { // RemoveMessage, REMOVE_ALL_MESSAGES
	var said []state.Message
	for _, text := range []string{
		`{"type":"text","role":"user","content":"a","id":"1"}`, `{"type":"text","role":"user","content":"b","id":"1"}`,
		`{"type":"remove","id":"1"}`, `{"type":"remove","id":"__remove_all__"}`,
	} {
		m, err := state.DecodeMessage([]byte(text))
		require.NoError(t, err)
		said = append(said, m)
	}
	st := state.New(nil)
	for _, m := range said {
		require.NoError(t, state.Messages.Set(st, []state.Message{m}))
	}
	require.Equal(t, said, state.Messages.Or(st, nil))
	twice := state.ToolCalls(ruleCall) // one id for two calls, as gpt-4o does
	require.NoError(t, state.Messages.Set(st, []state.Message{twice, state.ToolResult(ruleCall, "1"), twice, state.ToolResult(ruleCall, "2")}))
	require.Equal(t, 8, state.Len(st, state.Messages))
}

func TestPeersADKLosesNumbersOnReload(t *testing.T) {
	st := ruleNew(t, nil, map[string]any{"int": 3, "big": int64(1)<<53 + 1, "huge": uint64(math.MaxUint64), "half": 0.5})
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	for _, st := range []*state.State{st, back} {
		require.Equal(t, map[string]any{"int": int64(3), "big": int64(9007199254740993), "huge": uint64(math.MaxUint64), "half": 0.5}, st.KV().All())
	}
}

func TestPeersADKSwallowsNaN(t *testing.T) { // adk-go#1537
	st := ruleNew(t, nil, map[string]any{"x": 1})
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.KV().Set("x", math.NaN()), state.ErrWrongType) })
}

func TestPeersADKCannotDeleteAKey(t *testing.T) { // adk-go#326
	st := ruleNew(t, nil, map[string]any{"a": 1, "b": 2, "c": 3})
	_, err := st.KV().Delete("a")
	require.NoError(t, err)
	require.NoError(t, st.Patch(map[string]any{"b": nil}))
	require.Equal(t, []string{"c"}, st.KV().Keys())
}

func TestPeersADKCrashesOnIterationWhileWriting(t *testing.T) { // adk-go#309, #561
	st := ruleNew(t, nil, map[string]any{"a": []any{1}})
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 2000 {
			_ = st.KV().Set(fmt.Sprint(i%100), map[string]any{"i": i})
		}
	}()
	for range 200 {
		for _, v := range st.KV().All() {
			if m, ok := v.(map[string]any); ok {
				m["mine"] = true
			}
		}
	}
	<-done
	for _, v := range st.KV().All() {
		if m, ok := v.(map[string]any); ok {
			require.NotContains(t, m, "mine")
		}
	}
}

func TestPeersCloudflareWipesWhatIsAbsent(t *testing.T) { // agents#1004
	st := ruleNew(t, ruleSchema, map[string]any{"text": "kept", "count": 1})
	require.NoError(t, st.Patch(map[string]any{"count": 2}))
	require.Equal(t, "kept", ruleText.Or(st, ""))
}

func TestPeersCrewAIKeepsARunsValuesForTheNext(t *testing.T) { // crewAI#6639
	st := ruleNew(t, ruleSchema, map[string]any{"temp": "this run", "text": "every run"})
	require.NoError(t, st.EndRun())
	require.Equal(t, []string{"text"}, st.KV().Keys())
}

func TestPeersLlamaIndexSharesTheInitialStateOfRuns(t *testing.T) { // llama_index#21780
	base := ruleNew(t, ruleSchema, map[string]any{"tags": []string{"a"}, "meta": map[string]string{"k": "v"}}).Snapshot()
	for range 2 {
		run := base.Fork()
		require.NoError(t, ruleTags.Set(run, []string{"b"}))
		require.NoError(t, ruleMeta.Set(run, map[string]string{"k": "w"}))
		require.Equal(t, []string{"a", "b"}, ruleTags.Or(run, nil))
	}
	require.Equal(t, map[string]any{"tags": []string{"a"}, "meta": map[string]string{"k": "v"}}, base.KV().All())
}

func TestPeersRewriteTheWholeStateFromAStaleCopy(t *testing.T) { // mastra#17298, fluree/db#1331
	st := ruleNew(t, ruleSchema, map[string]any{"count": 0})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				err := st.Update(func(tx *state.State) error { return ruleCount.Set(tx, ruleCount.Or(tx, 0)+1) })
				if err == nil {
					err = ruleCount.Update(st, func(n int) (int, error) { return n + 1, nil })
				}
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1600, ruleCount.Or(st, 0))
}

// An optional field is a pointer. By name it is what a script expects: nil or
// the value.
func TestAnOptionalValueIsNilOrTheValueByName(t *testing.T) {
	os := &state.Field[*string]{Name: "os"}
	deep := &state.Field[**int]{Name: "deep"}
	doc := &state.Field[*ruleDoc]{Name: "doc"}
	shared := &state.Field[*ruleDoc]{Name: "shared", NoCopy: true}
	list := &state.Field[[]*string]{Name: "list"}
	schema := state.MustSchema(os, deep, doc, shared, list)
	text, n := "linux", 5
	pn := &n
	for _, tt := range []struct {
		write      func(*state.State) error
		name       string
		want       any
		wantChange any
	}{
		{func(st *state.State) error { return os.Set(st, nil) }, "os", nil, nil},
		{func(st *state.State) error { return os.Set(st, &text) }, "os", "linux", "linux"},
		{func(st *state.State) error { return st.KV().Set("os", nil) }, "os", nil, nil},
		{func(st *state.State) error { return st.KV().Set("os", "linux") }, "os", "linux", "linux"},
		{func(st *state.State) error { return deep.Set(st, &pn) }, "deep", 5, 5},
		{func(st *state.State) error { return deep.Set(st, new(*int)) }, "deep", nil, nil},
		{func(st *state.State) error { return doc.Set(st, &ruleDoc{"t", []string{}}) }, "doc", ruleDoc{"t", []string{}}, ruleDoc{"t", []string{}}},
		{func(st *state.State) error { return shared.Set(st, &ruleDoc{"t", []string{}}) }, "shared", ruleDoc{"t", []string{}}, ruleDoc{"t", []string{}}},
		{func(st *state.State) error { return shared.Set(st, nil) }, "shared", nil, nil},
		{func(st *state.State) error { return list.Set(st, []*string{&text, nil}) }, "list", []*string{&text, nil}, []*string{&text, nil}},
	} {
		st := state.New(schema)
		require.NoError(t, tt.write(st))
		require.True(t, st.KV().Has(tt.name))
		got, ok := st.KV().Get(tt.name)
		require.True(t, ok)
		require.Equal(t, tt.want, got)
		got, err := state.Get[any](st, tt.name)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
		require.Equal(t, map[string]any{tt.name: tt.want}, st.KV().All())
		for c := range st.Changes(0) {
			require.Equal(t, tt.wantChange, c.Value)
		}
		if tt.want != nil { // what came out goes in
			require.NoError(t, st.KV().Replace(tt.name, tt.want))
			got, _ = st.KV().Get(tt.name)
			require.Equal(t, tt.want, got)
		}
	}
	// A caller that asks for a pointer gets one.
	st := state.New(schema)
	require.NoError(t, os.Set(st, &text))
	p, err := state.Get[*string](st, "os")
	require.NoError(t, err)
	require.Equal(t, &text, p)
	s, err := state.Get[string](st, "os")
	require.NoError(t, err)
	require.Equal(t, text, s)
	require.NoError(t, os.Set(st, nil))
	p, err = state.Get[*string](st, "os")
	require.NoError(t, err)
	require.Nil(t, p)
	_, err = state.Get[string](st, "os")
	require.ErrorIs(t, err, state.ErrWrongType)
}

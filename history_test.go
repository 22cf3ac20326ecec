package state_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/transcript"
)

// The tests of this file prove the rules of the history: appending results and
// their messages in one version, who may sign and read them, and the sequences
// that At, By, From, Pop and Reset give.

var ruleCall = state.ToolCall{ID: "c1", Name: "search", Input: `{"q":1.0}`}

// ruleResult returns a result in which every member is set.
func ruleResult(id, agent string) state.InferenceResult {
	return state.InferenceResult{
		ID: id, Agent: agent, Input: "find it", Raw: "{\"choices\": [] }\n\xff",
		Prompt:    []state.Message{state.SystemText("be kind")},
		History:   []state.Message{state.UserText("hello " + id)},
		Output:    []state.Message{state.AssistantText("I look"), state.ToolCalls(ruleCall)},
		ToolCalls: []state.ToolResultMessage{state.ToolResult(ruleCall, `["found"]`)},
		StartedAt: time.Date(2024, 1, 2, 3, 4, 0, 7, time.UTC),
		CreatedAt: time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC),
	}
}

func ruleIDs(results []state.InferenceResult) string {
	var ids []string
	for _, r := range results {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func ruleHistory(t require.TestingT, ids ...string) *state.State {
	st := state.New(nil)
	for _, id := range ids {
		require.NoError(t, st.History().Append(ruleResult(id, "agent "+id)))
	}
	return st
}

func TestAppendAlsoAppendsOutputThenToolCallsToMessagesInTheSameVersion(t *testing.T) {
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hello")}))
	r := ruleResult("1", "a")
	require.NoError(t, st.History().Append(r))
	require.Equal(t, uint64(2), st.Version())
	got, err := state.Messages.Get(st)
	require.NoError(t, err)
	require.Equal(t, []state.Message{state.UserText("hello"), r.Output[0], r.Output[1], r.ToolCalls[0]}, callkeys.Without(got...))
	last, ok := st.History().Last()
	require.True(t, ok)
	require.Empty(t, cmp.Diff(r, last, callkeys.Ignored), "every member, Raw byte for byte")
	require.Equal(t, got[1:], []state.Message{last.Output[0], last.Output[1], last.ToolCalls[0]}, "with the same key")
	require.Equal(t, callkeys.Of(t, st, ruleCall.ID), last.ToolCalls[0].Call().Key)
	changes := ruleChanges(t, st, 1)
	require.Len(t, changes, 2)
	for _, c := range changes {
		require.Equal(t, uint64(2), c.Version)
	}
}

// Live and reloaded states are equal only if a time has one form.
func TestTimesOfResultsAreStoredInUTC(t *testing.T) {
	east := time.FixedZone("", 3600)
	given := state.InferenceResult{StartedAt: time.Now().In(east), CreatedAt: time.Now().In(east)}
	appended, reset := state.New(nil), state.New(nil)
	require.NoError(t, appended.History().Append(given))
	require.NoError(t, reset.History().Reset([]state.InferenceResult{given}))
	for _, st := range []*state.State{appended, reset} {
		got, _ := st.History().Last()
		require.Equal(t, given.StartedAt.UTC().Round(0), got.StartedAt)
		require.Equal(t, given.CreatedAt.UTC().Round(0), got.CreatedAt)
	}
	require.NoError(t, appended.History().Append(state.InferenceResult{}))
	got, _ := appended.History().Last()
	require.True(t, got.StartedAt.IsZero(), "only the caller knows when the call began")
	require.False(t, got.CreatedAt.IsZero())
	require.NotContains(t, ruleExport(t, appended)[len(ruleExport(t, reset)):], "started_at")
}

func TestAppendToAReplacingConversationStillAppends(t *testing.T) {
	st := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: state.Replace[[]state.Message]()}))
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	require.NoError(t, st.History().Append(ruleResult("2", "a")))
	require.Equal(t, 6, state.ListLen(st, state.Messages), "stack and conversation agree")
}

func TestAppendIsAllOrNothing(t *testing.T) {
	long := state.AssistantText(strings.Repeat("x", 300))
	st := state.New(state.MustSchema(state.Limits{ValueBytes: 500}))
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{long}}))
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.History().Append(state.InferenceResult{Output: []state.Message{long}}), state.ErrLimitExceeded)
	})
	refuse := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Validate: func([]state.Message) error { return errRuleEven }}))
	ruleUnchanged(t, refuse, func() {
		require.ErrorIs(t, refuse.History().Append(ruleResult("1", "a")), errRuleEven)
	})
	require.Zero(t, refuse.History().Len())
	require.NoError(t, refuse.History().Append(state.InferenceResult{}), "without messages there is nothing to validate")
}

func TestAFullConversationSaysWhatToDo(t *testing.T) {
	st := state.New(state.MustSchema(state.Limits{ValueBytes: 500}))
	err := error(nil)
	for err == nil {
		err = st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("a line of an answer")}})
	}
	require.ErrorIs(t, err, state.ErrLimitExceeded)
	require.ErrorContains(t, err, `state: "messages": limit ValueBytes: `)
	require.ErrorContains(t, err, "the whole conversation is one value: keep its last messages (transcript.KeepLast) or raise Limits.ValueBytes")
}

// A prompt and a history take no room in a state that has their messages, but
// Import must be able to bound what its text refers to.
func TestAPromptAndAHistoryAreAtMostAsLongAsAValue(t *testing.T) {
	long := slices.Repeat([]state.Message{state.UserText(strings.Repeat("x", 100))}, 4)
	st := state.New(state.MustSchema(state.Limits{ValueBytes: 500}))
	for name, r := range map[string]state.InferenceResult{"prompt": {Prompt: long}, "history": {History: long}} {
		ruleUnchanged(t, st, func() {
			require.ErrorIs(t, st.History().Append(r), state.ErrLimitExceeded, name)
			require.ErrorIs(t, st.History().Reset([]state.InferenceResult{r}), state.ErrLimitExceeded, name)
		})
	}
	require.NoError(t, st.History().Append(state.InferenceResult{Prompt: long[:3], History: long[:3]}))
	_, err := state.Import(state.MustSchema(state.Limits{ValueBytes: 500}), []byte(ruleExport(t, st)))
	require.NoError(t, err)
	_, err = state.Import(state.MustSchema(state.Limits{ValueBytes: 400}), []byte(ruleExport(t, st)))
	require.ErrorIs(t, err, state.ErrLimitExceeded)
}

func TestAppendRefusesWhatIsNoResult(t *testing.T) {
	st := ruleHistory(t, "1")
	for path, r := range map[string]state.InferenceResult{
		"$.id":            {ID: "\xff"},
		"$.agent":         {Agent: "\xff"},
		"$.input":         {Input: "\xff"},
		"$.prompt[0]":     {Prompt: []state.Message{nil}},
		"$.history[1]":    {History: []state.Message{state.UserText("a"), state.TextMessage{}}},
		"$.output[0]":     {Output: []state.Message{state.UnknownMessage{}}},
		"$.output[1]":     {Output: []state.Message{state.UserText("a"), nil}},
		"$.tool_calls[0]": {ToolCalls: []state.ToolResultMessage{{}}},
		"$.created_at":    {CreatedAt: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		ruleUnchanged(t, st, func() {
			for _, err := range []error{st.History().Append(r), st.History().Reset([]state.InferenceResult{r})} {
				var typeErr *state.TypeError
				require.ErrorAs(t, err, &typeErr, path)
				require.Equal(t, path, typeErr.Path)
				require.Equal(t, "history", typeErr.Field)
			}
		})
	}
}

func TestAppendFillsInAgentAndTime(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}))
	before := time.Now()
	require.NoError(t, st.History().Append(state.InferenceResult{Agent: "anybody"}), "the host signs for all")
	require.NoError(t, st.As("a").History().Append(state.InferenceResult{}))
	require.NoError(t, st.As("a").History().Append(state.InferenceResult{Agent: "a"}))
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.As("a").History().Append(state.InferenceResult{Agent: "b"}), state.ErrDenied)
		require.ErrorIs(t, st.As("").History().Append(state.InferenceResult{}), state.ErrDenied)
	})
	var agents []string
	for _, r := range st.History().Results() {
		agents = append(agents, r.Agent)
		require.False(t, r.CreatedAt.Before(before) || r.CreatedAt.After(time.Now()))
		require.Equal(t, time.UTC, r.CreatedAt.Location())
	}
	require.Equal(t, []string{"anybody", "a", "a"}, agents)
}

func TestHistoryReads(t *testing.T) {
	st := ruleHistory(t, "0", "1", "2", "3")
	h := st.History()
	require.Equal(t, 4, h.Len())
	require.Equal(t, "0 1 2 3", ruleIDs(h.Results()))
	for i, want := range map[int]string{-1: "", 0: "0", 3: "3", 4: ""} {
		r, ok := h.At(i)
		require.Equal(t, want != "", ok, "at %d", i)
		require.Equal(t, want, r.ID)
	}
	var all []string
	for i, r := range h.All() {
		all = append(all, fmt.Sprint(i, ":", r.ID))
		require.NoError(t, st.History().Append(ruleResult("later", "x")), "no lock is held")
	}
	require.Equal(t, []string{"0:0", "1:1", "2:2", "3:3"}, all, "one moment")
	require.Equal(t, "0 1 2 3 later later later later", ruleIDs(h.Results()))
	for range h.All() {
		break
	}
	empty := state.New(nil).History()
	_, ok := empty.Last()
	require.False(t, ok)
	require.Equal(t, []state.InferenceResult{}, empty.Results())
}

func TestFormatJoinsWhatItMakesOfEachResult(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	r := ruleResult("0", "")
	one := []state.Message{r.Output[0], r.Output[1], r.ToolCalls[0]}
	require.Equal(t, slices.Concat(one, one), callkeys.Without(st.History().Format(nil)...), "output, then tool calls")
	require.Equal(t, st.History().Format(nil), st.History().Format(nil), "and it can be asked again")
	require.Equal(t, []state.Message{state.UserText("agent 0"), state.UserText("agent 1")}, st.History().Format(func(r state.InferenceResult) []state.Message {
		return []state.Message{state.UserText(r.Agent)}
	}))
	require.Equal(t, []state.Message{}, state.New(nil).History().Format(nil))
}

func TestResultsGoThroughJSON(t *testing.T) {
	r := ruleResult("1", "a")
	r.Raw = `{"a": 1.0}`
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var back state.InferenceResult
	require.NoError(t, json.Unmarshal(data, &back))
	require.Empty(t, cmp.Diff(r, back))
	data, err = json.Marshal(state.InferenceResult{})
	require.NoError(t, err)
	require.Contains(t, string(data), `"prompt":[],"history":[],"output":[],"tool_calls":[]`)
	require.NotContains(t, string(data), "started_at", "a zero time is left out")
	for text, want := range map[string]string{
		`{"tool_calls":[{"type":"text","role":"user","content":"x"}]}`: "$.tool_calls[0]: want a tool result, got \"text\"",
		`{"output":[{"type":"text"}]}`:                                 "output",
		`{"prompt":{}}`:                                                "prompt",
		`{"agent":1}`:                                                  "agent",
	} {
		got := ruleResult("kept", "a")
		require.ErrorContains(t, json.Unmarshal([]byte(text), &got), want)
		require.Equal(t, "kept", got.ID, "an error leaves the result as it was")
	}
}

// A message is stored once: each result holds the whole conversation so far,
// and still memory and encoding grow with the number of results.
func TestAMessageIsStoredOnce(t *testing.T) {
	size := func(n int) int {
		st := state.New(nil)
		prompt := []state.Message{state.SystemText(strings.Repeat("instructions ", 100))}
		for i := range n {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprintf("question %06d", i))}))
			said, err := state.Messages.Get(st)
			require.NoError(t, err)
			require.NoError(t, st.History().Append(state.InferenceResult{
				Agent: "a", Prompt: prompt, History: said, Output: []state.Message{state.AssistantText(fmt.Sprintf("answer %06d", i))},
				CreatedAt: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC),
			}))
		}
		data := ruleExport(t, st)
		back, err := state.Import(nil, []byte(data))
		require.NoError(t, err)
		for _, i := range []int{n - 3, n - 2, n - 1} {
			want, _ := st.History().At(i)
			got, _ := back.History().At(i)
			require.Empty(t, cmp.Diff(want, got))
		}
		last, _ := back.History().Last()
		require.Len(t, last.History, 2*n-1)
		require.Equal(t, data, ruleExport(t, back))
		return len(data)
	}
	hundred, thousand := size(100), size(1000)
	require.Less(t, thousand, 12*hundred, "linear in the results")
	require.Less(t, thousand, 1000*500)
}

func TestMessagesOfPoppedResultsDoNotStayForEver(t *testing.T) {
	st := state.New(nil)
	for i := range 200 {
		require.NoError(t, st.History().Append(state.InferenceResult{Prompt: []state.Message{state.SystemText(fmt.Sprint(i, strings.Repeat("x", 1000)))}}))
		_, _, err := st.History().Pop()
		require.NoError(t, err)
	}
	require.Less(t, len(ruleExport(t, st)), 10_000)
}

// Equal messages are the same message only if they are spelled the same.
func TestMessagesKeepTheirSpellingInResults(t *testing.T) {
	var said []state.Message
	for _, text := range []string{`{"type":"text","role":"user","content":"a","n":1.0}`, `{"type":"text","role":"user","content":"a","n":1}`, `{"n":1,"type":"text","role":"user","content":"a"}`} {
		m, err := state.DecodeMessage([]byte(text))
		require.NoError(t, err)
		said = append(said, m)
	}
	st := state.New(nil)
	require.NoError(t, st.History().Append(state.InferenceResult{History: said, Output: slices.Concat(said, said)}))
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	for _, st := range []*state.State{st, back} {
		r, _ := st.History().Last()
		for i, m := range slices.Concat(r.History, r.Output, state.Messages.GetOr(st, nil)) {
			require.Equal(t, said[i%3].Raw(), m.Raw())
		}
	}
}

// The tests below prove what the stack of results costs.

// A result whose history is the conversation as it is adds one run of messages,
// however the values were made, and whatever texts are repeated elsewhere.
func TestAHistoryThatContinuesTheLastOneIsOneRun(t *testing.T) {
	for _, made := range []string{"the same values", "equal values"} {
		st := state.New(nil)
		for i := range 50 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprint("question ", i))}))
			said := state.Messages.GetOr(st, nil)
			if made == "equal values" {
				for i, m := range said {
					var err error
					said[i], err = state.DecodeMessage([]byte(m.Raw()))
					require.NoError(t, err)
				}
			}
			require.NoError(t, st.History().Append(state.InferenceResult{
				Prompt: []state.Message{state.SystemText("You help.")}, History: said[max(0, len(said)-20):],
				Output: []state.Message{state.AssistantText(fmt.Sprint("answer ", i))},
			}))
		}
		data := ruleExport(t, st)
		require.NotContains(t, data, `"history":[[1,2],[3,4]`)
		require.Contains(t, data, `"history":[[80,100]]`, made)
	}
}

// Branches add messages to one table at the same time. Each has the messages of
// its own results, each once.
func TestBranchesPushAtTheSameTime(t *testing.T) {
	st := state.New(nil)
	for i := range 20 {
		require.NoError(t, st.History().Append(ruleResult(fmt.Sprint(i), "a")))
	}
	var wg sync.WaitGroup
	branches := make([]*state.State, 8)
	for b := range branches {
		branches[b] = st.Fork()
		wg.Go(func() {
			for i := range 200 {
				r := ruleResult(fmt.Sprint(i%(b+3)), "a")
				r.Output = append(r.Output, state.AssistantText(fmt.Sprint(b, i%7)))
				if err := branches[b].History().Append(r); err != nil {
					panic(err)
				}
				if i%3 == 0 {
					if _, _, err := branches[b].History().Pop(); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for b, branch := range append(branches, st) {
		back, err := state.Import(nil, []byte(ruleExport(t, branch)))
		require.NoError(t, err, "branch %d has a message twice", b)
		require.Equal(t, branch.History().Results(), back.History().Results())
	}
}

func idsOf(calls []state.ToolCall) []string {
	ids := []string{}
	for _, c := range calls {
		ids = append(ids, c.ID+c.Name)
	}
	return ids
}

// TestPendingOfAgent: an agent finds the calls of its own results, whether or
// not they are in Messages, and the host those of no agent.
func TestPendingOfAgent(t *testing.T) {
	schema := state.MustSchema(
		&state.Field[[]state.Message]{Name: "messages", Read: state.Only("billing"), Write: state.Only("billing")},
		state.Team{"billing": {"search"}})
	for _, schema := range []*state.Schema{state.MustSchema(state.Team{"billing": {"search"}}), schema} {
		st := state.New(schema)
		for _, agent := range []string{"billing", "search", ""} {
			said := []state.Message{state.AssistantText("looking"), state.ToolCalls(state.ToolCall{ID: agent + "1"}, state.ToolCall{ID: agent + "2"})}
			require.NoError(t, st.History().Append(state.InferenceResult{Agent: agent, Output: said}))
			said = []state.Message{state.ToolCalls(state.ToolCall{ID: agent + "3"})}
			require.NoError(t, st.History().AppendOutside(state.InferenceResult{Agent: agent, Output: said}))
		}
		require.NoError(t, st.As("search").History().Answer(state.ToolResult(state.ToolCall{ID: "search2"}, "1")))
		for _, as := range []func(*state.State) *state.State{(*state.State).Snapshot, func(st *state.State) *state.State { return st }} {
			require.Equal(t, []string{"billing1", "billing2", "billing3"}, idsOf(as(st.As("billing")).History().Pending()))
			require.Equal(t, []string{"search1", "search3"}, idsOf(as(st.As("search")).History().Pending()))
			require.Equal(t, []string{"1", "2", "3"}, idsOf(as(st).History().Pending()))
		}
	}
	require.Empty(t, state.New(nil).History().Pending(state.ToolCall{ID: "1"}))
}

// TestPendingElsewhere: an answer that is in Messages only counts, and a call
// that was trimmed stays pending.
func TestPendingElsewhere(t *testing.T) {
	st := state.New(nil)
	calls := []state.ToolCall{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}}
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	msgs, err := transcript.Answer(state.Messages.GetOr(st, nil), state.ToolError(calls[0], "cut off"))
	require.NoError(t, err)
	require.NoError(t, state.Messages.Replace(st, msgs))
	require.Equal(t, []string{"2b"}, idsOf(st.History().Pending()))

	require.NoError(t, state.Messages.Replace(st, nil))
	require.Equal(t, []string{"1a", "2b"}, idsOf(st.History().Pending()))
}

// TestPendingSuspended: a suspended call stands for one call, by its id, or by
// its name if the provider gives no ids.
func TestPendingSuspended(t *testing.T) {
	st := state.New(nil)
	for _, calls := range [][]state.ToolCall{{{ID: "1", Name: "a"}, {ID: "1", Name: "b"}, {Name: "c"}, {Name: "c"}}, {{ID: "1", Name: "b"}}} {
		require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	}
	for _, row := range []struct{ suspended, want string }{
		{"", "1a 1b c c 1b"},
		{"1a", "1b c c 1b"},
		{"1b", "1a c c 1b"},
		{"1b 1b 1b", "c c"},
		{"1 c", "1b c 1b"},
		{"2a b", "1a 1b c c 1b"},
	} {
		var suspended []state.ToolCall
		for _, c := range strings.Fields(row.suspended) {
			call := state.ToolCall{Name: c}
			if c[0] <= '9' {
				call = state.ToolCall{ID: c[:1], Name: c[1:]}
			}
			suspended = append(suspended, call)
		}
		require.Equal(t, strings.Fields(row.want), idsOf(st.History().Pending(suspended...)), row.suspended)
	}
}

// TestPendingRandom: if every message is in the conversation and each call has
// an id of its own, the history and the conversation have the same open calls.
func TestPendingRandom(t *testing.T) {
	for seed := range uint64(effort.Runs(200)) {
		random := rand.New(rand.NewPCG(seed, 1))
		st, open, n := state.New(nil), []state.ToolCall{}, 0
		for range 30 {
			if len(open) == 0 || random.IntN(2) == 0 {
				var calls []state.ToolCall
				for range 1 + random.IntN(20) {
					n++
					calls = append(calls, state.ToolCall{ID: fmt.Sprint(n), Name: "f"})
				}
				require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
				open = append(open, calls...)
			} else {
				i := random.IntN(len(open))
				require.NoError(t, st.History().Answer(state.ToolResult(open[i], "1")))
				open = slices.Delete(open, i, i+1)
			}
			require.Equal(t, idsOf(open), idsOf(st.History().Pending()), "seed %d", seed)
			msgs := state.Messages.GetOr(st, nil)
			require.Equal(t, idsOf(transcript.Pending(msgs)), idsOf(st.History().Pending()), "seed %d", seed)
		}
	}
}

// The tests below prove the rules of a result in pieces: Push, Answer and
// Load.

// partCalls returns calls with these ids, each of a tool of its name.
func partCalls(ids ...string) []state.ToolCall {
	calls := make([]state.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = state.ToolCall{ID: id, Name: "tool_" + id, Input: "{}"}
	}
	return calls
}

func partDone(call state.ToolCall) state.ToolResultMessage {
	return state.ToolResult(call, state.JSONText("done "+call.ID))
}

// partOpen appends a result whose calls are open.
func partOpen(t require.TestingT, st *state.State, id string, calls ...state.ToolCall) {
	require.NoError(t, st.History().Append(state.InferenceResult{ID: id, Output: []state.Message{state.ToolCalls(calls...)}}))
}

// partShow returns a conversation in short: texts as they are, calls in brackets
// and results after an equals sign.
func partShow(msgs []state.Message) string {
	var words []string
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			words = append(words, m.Text())
		case state.ToolCallMessage:
			var ids []string
			for _, c := range m.Calls() {
				ids = append(ids, c.ID)
			}
			words = append(words, "["+strings.Join(ids, " ")+"]")
		case state.ToolResultMessage:
			words = append(words, "="+m.Call().ID)
		}
	}
	return strings.Join(words, " ")
}

func partSaid(st *state.State) string { return partShow(state.Messages.GetOr(st, nil)) }

func partAnswered(r state.InferenceResult) string {
	var msgs []state.Message
	for _, m := range r.ToolCalls {
		msgs = append(msgs, m)
	}
	return partShow(msgs)
}

func partLast(st *state.State) string {
	r, _ := st.History().Last()
	return partAnswered(r)
}

func TestPushLeavesMessagesAlone(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hello")}))
	r := ruleResult("1", "a")
	require.NoError(t, st.As("a").History().AppendOutside(r))
	require.Equal(t, uint64(2), st.Version())
	require.Equal(t, "hello", partSaid(st))
	last, _ := st.History().Last()
	require.Empty(t, cmp.Diff(r, last, callkeys.Ignored))
	changes := ruleChanges(t, st, 1)
	require.Len(t, changes, 1)
	require.Equal(t, state.OpAppend, changes[0].Op)
	require.ErrorIs(t, st.As("b").History().AppendOutside(r), state.ErrDenied)

	require.NoError(t, st.History().AppendOutside(state.InferenceResult{Output: []state.Message{state.ToolCalls(partCalls("c")...)}}))
	require.NoError(t, st.History().Answer(partDone(partCalls("c")[0])))
	require.Equal(t, "hello", partSaid(st), "its calls are not in the conversation, and neither are their answers")
	require.Equal(t, "=c", partLast(st))
}

// Append of a whole result leaves the same content as Append of its output and
// Answer.
func TestAppendInPiecesIsAppend(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var trim state.Handler[[]state.Message]
		if rapid.Bool().Draw(t, "trims") {
			trim = transcript.KeepLast(rapid.IntRange(1, 6).Draw(t, "window")).Handler()
		}
		schema := state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: trim})
		whole, pieces := state.New(schema), state.New(schema)
		n := 0
		for range rapid.IntRange(1, 5).Draw(t, "results") {
			var r state.InferenceResult
			for range rapid.IntRange(0, 3).Draw(t, "output") {
				if rapid.Bool().Draw(t, "says") {
					r.Output = append(r.Output, state.AssistantText("I look"))
					continue
				}
				var ids []string
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					n++
					ids = append(ids, fmt.Sprint(n))
				}
				calls := partCalls(ids...)
				r.Output = append(r.Output, state.ToolCalls(calls...))
				for _, c := range calls {
					r.ToolCalls = append(r.ToolCalls, partDone(c))
				}
			}
			r.CreatedAt = ruleResult("", "").CreatedAt
			require.NoError(t, whole.History().Append(r))

			results := r.ToolCalls
			r.ToolCalls = nil
			require.NoError(t, pieces.History().Append(r))
			if trim.Name() != "" {
				require.NoError(t, pieces.History().Answer(results...))
			} else {
				order := rapid.Permutation(results).Draw(t, "order")
				for len(order) > 0 {
					k := rapid.IntRange(1, len(order)).Draw(t, "together")
					require.NoError(t, pieces.History().Answer(order[:k]...))
					order = order[k:]
				}
			}
			if rapid.Bool().Draw(t, "interrupted") {
				for _, st := range []*state.State{whole, pieces} {
					require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
				}
			}
		}
		require.Equal(t, partSaid(whole), partSaid(pieces))
		require.Empty(t, cmp.Diff(whole.History().Results(), pieces.History().Results(), callkeys.Ignored))
		for _, st := range []*state.State{whole, pieces} {
			requireKeys(t, st)
		}
	})
}

func TestAnswersOfBranchesJoinInCallOrder(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	a, b := st.Fork(), st.Fork()
	require.NoError(t, b.History().Answer(partDone(calls[1])))
	require.NoError(t, a.History().Answer(partDone(calls[0])))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	require.NoError(t, st.Join(b, a))
	require.Equal(t, "[a b] =a =b and?", partSaid(st))
	require.Equal(t, "=a =b", partLast(st))

	// Each branch has a result of its own, and the same id is used again.
	a, b = st.Fork(), st.Fork()
	for _, branch := range []*state.State{a, b} {
		partOpen(t, branch, "2", calls...)
		require.NoError(t, branch.History().Answer(partDone(calls[1])))
		require.NoError(t, branch.History().Answer(partDone(calls[0])))
	}
	require.NoError(t, st.Join(a, b))
	require.Equal(t, "[a b] =a =b and? [a b] =a =b [a b] =a =b", partSaid(st))
	for _, r := range st.History().Results() {
		require.Equal(t, "=a =b", partAnswered(r))
	}

	// A branch that answered the latest result keeps to it, although a later one
	// has a call of the same id.
	partOpen(t, st, "4", calls...)
	a = st.Fork()
	require.NoError(t, a.History().Answer(partDone(calls[0])))
	partOpen(t, st, "5", calls...)
	require.NoError(t, st.Join(a))
	results := st.History().Results()
	require.Equal(t, "=a", partAnswered(results[len(results)-2]))
	require.Empty(t, partAnswered(results[len(results)-1]))
}

func TestBranchesThatAnswerOneCallAreAConflict(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	a, b := st.Fork(), st.Fork()
	for _, branch := range []*state.State{a, b} {
		require.NoError(t, branch.History().Answer(partDone(calls[0])))
	}
	ruleUnchanged(t, st, func() {
		var conflict *state.ConflictError
		require.ErrorAs(t, st.Join(a, b), &conflict)
		require.Equal(t, []string{"history"}, conflict.Fields)
	})
	require.NoError(t, st.Join(a))
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.Join(b), state.ErrConflict) })

	popped := st.Fork()
	require.NoError(t, popped.History().Answer(partDone(calls[1])))
	_, _, err := st.History().Pop()
	require.NoError(t, err)
	require.ErrorIs(t, st.Join(popped), state.ErrConflict, "the result is gone")
}

func TestAnswerInATransaction(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, st.History().Answer(partDone(calls[1])))
		}
		return tx.History().Answer(partDone(calls[0]))
	}))
	require.Equal(t, "[a b] =a =b", partSaid(st))
	require.Equal(t, 1, runs, "answers to different calls do not conflict")

	partOpen(t, st, "2", calls...)
	runs = 0
	require.ErrorIs(t, st.Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, st.History().Answer(partDone(calls[0])))
		}
		return tx.History().Answer(partDone(calls[0]))
	}), state.ErrAnswered)
	require.Equal(t, 2, runs)
	require.Equal(t, "=a", partLast(st))
}

func TestAnswerRefuses(t *testing.T) {
	calls := partCalls("a", "b", "x")
	st := state.New(state.MustSchema(state.Limits{ValueBytes: 2_000}))
	partOpen(t, st, "1", calls[:2]...)
	require.NoError(t, st.History().Answer())
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	for name, c := range map[string]struct {
		results []state.ToolResultMessage
		want    error
		text    string
	}{
		"unknown": {[]state.ToolResultMessage{partDone(calls[1]), partDone(calls[2])}, state.ErrUnknownCall, `state: call "x" of "tool_x": unknown call`},
		"no name": {[]state.ToolResultMessage{partDone(state.ToolCall{ID: "x"})}, state.ErrUnknownCall, `state: call "x": unknown call`},
		"no id":   {[]state.ToolResultMessage{partDone(state.ToolCall{Name: "x"})}, state.ErrUnknownCall, `state: call of "x": unknown call`},
		"another name": {
			[]state.ToolResultMessage{partDone(state.ToolCall{ID: "b", Name: "tool_a"})},
			state.ErrUnknownCall, `state: call "b" of "tool_a": unknown call: the call with this id is of "tool_b"`,
		},
		"answered": {[]state.ToolResultMessage{partDone(calls[0])}, state.ErrAnswered, `state: call "a" of "tool_a": call is answered`},
		"twice":    {[]state.ToolResultMessage{partDone(calls[1]), partDone(calls[1])}, state.ErrAnswered, `state: call "b" of "tool_b": call is answered`},
		"zero":     {[]state.ToolResultMessage{partDone(calls[1]), {}}, state.ErrWrongType, `state: "history": $[1]: want a message, got the zero message`},
		"large": {
			[]state.ToolResultMessage{state.ToolResult(calls[1], state.JSONText(strings.Repeat("x", 2_000)))},
			state.ErrLimitExceeded, `state: "history": limit ValueBytes: 2549 is more than 2000`,
		},
	} {
		ruleUnchanged(t, st, func() {
			err := st.History().Answer(c.results...)
			require.ErrorIs(t, err, c.want, name)
			require.EqualError(t, err, c.text, name)
		})
	}
	require.ErrorIs(t, st.Snapshot().History().Answer(partDone(calls[1])), state.ErrReadOnly)
}

// A result that was recorded with another name belongs to the call of its id.
func TestRecordedResultsOfAnotherNameAreMatched(t *testing.T) {
	call := state.ToolCall{ID: "1", Name: "a", Input: "{}"}
	st := state.New(nil)
	require.NoError(t, st.History().Append(state.InferenceResult{
		Output:    []state.Message{state.ToolCalls(call)},
		ToolCalls: []state.ToolResultMessage{state.ToolResult(state.ToolCall{ID: "1", Name: "b"}, "1")},
	}))
	require.Empty(t, st.History().Pending())
}

// requireKeys requires that the calls of a history have different keys, and that
// their results and the conversation have the same ones. Their ids are unique.
func requireKeys(t require.TestingT, st *state.State) {
	keys := map[string]string{} // by ids
	for i, m := range append(st.History().Format(nil), state.Messages.GetOr(st, nil)...) {
		var calls []state.ToolCall
		switch m := m.(type) {
		case state.ToolCallMessage:
			calls = m.Calls()
		case state.ToolResultMessage:
			calls = []state.ToolCall{m.Call()}
		}
		for _, c := range calls {
			require.Regexp(t, "^c[A-Za-z0-9_-]{14}$", c.Key)
			if keys[c.ID] == "" {
				require.NotContains(t, slices.Collect(maps.Values(keys)), c.Key)
				keys[c.ID] = c.Key
			}
			require.Equal(t, keys[c.ID], c.Key, "message %d", i)
		}
	}
}

// A key whose first letter is r says that another call had the id before.
func TestKeysDoNotTellAnAgentWhatItMayNotRead(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}, &state.Field[[]state.Message]{Name: "messages", Owner: "a"}))
	letter := func(agent, id string) string { // the host writes what the agent says into the conversation
		said := []state.Message{state.ToolCalls(partCalls(id)...)}
		require.NoError(t, st.History().Append(state.InferenceResult{Agent: agent, Output: said}))
		r, _ := st.As(agent).History().Last()
		return r.Output[0].(state.ToolCallMessage).Calls()[0].Key[:1]
	}
	require.Equal(t, "c", letter("a", "1"))
	require.Equal(t, "c", letter("b", "1"), "b does not see the call of a")
	require.Equal(t, "r", letter("b", "1"), "and sees its own")
	require.Equal(t, "r", letter("a", "1"))
	require.Equal(t, "c", letter("b", "2"))
	require.Equal(t, "r", letter("a", "2"), "a reads the conversation")
}

// A key that is given stays, unless another call of the conversation has it.
func TestAppendDrawsAKeyForACallWhoseKeyIsTaken(t *testing.T) {
	st, other := state.New(nil), state.New(nil)
	partOpen(t, st, "1", partCalls("1")...)
	given := st.History().Pending()
	partOpen(t, other, "1", given...)
	require.Equal(t, given, other.History().Pending())
	partOpen(t, st, "2", given[0])
	pending := st.History().Pending()
	require.Len(t, pending, 2)
	require.NotEqual(t, pending[0].Key, pending[1].Key)
	require.Equal(t, "r", pending[1].Key[:1], "its id repeats, too")
}

// Of an output with many calls, too, an answer with a key is for the call with
// it, whatever its id is, and one without is for the first open call of its id
// and name.
func TestAnswersOfManyCallsAreMatchedAsThoseOfFew(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		newCall := func() state.ToolCall {
			return state.ToolCall{ID: pick("id", "", "1", "2", "3"), Name: pick("name", "a", "b"), Input: "{}"}
		}
		calls := make([]state.ToolCall, rapid.IntRange(1, 40).Draw(t, "calls"))
		for i := range calls {
			calls[i] = newCall()
		}
		st := state.New(nil)
		output := []state.Message{state.ToolCalls(calls...)}
		require.NoError(t, st.History().Append(state.InferenceResult{Output: output}))
		calls = st.History().Pending()

		given := make([]state.JSON, len(calls))
		for i := range 50 {
			call := newCall()
			switch call.Key = pick("key", "", "", "known", "other"); call.Key {
			case "known":
				call.Key = rapid.SampledFrom(calls).Draw(t, "call").Key
			case "other":
				call.Key = "cOtherOtherOther"
			}
			known, open, number := false, false, -1
			for n, c := range calls {
				fits := c.ID == call.ID && (c.ID != "" || c.Name == call.Name)
				if call.Key != "" {
					fits = c.Key == call.Key
				}
				known = known || fits && c.Name == call.Name
				open = open || fits && given[n] == ""
				if fits && given[n] == "" && number < 0 && c.Name == call.Name {
					number = n
				}
			}
			err := st.History().Answer(state.ToolResult(call, state.JSON(fmt.Sprint(i))))
			switch {
			case number >= 0:
				require.NoError(t, err)
				given[number] = state.JSON(fmt.Sprint(i))
			case known, !open && slices.ContainsFunc(calls, func(c state.ToolCall) bool {
				return call.Key == "" && call.ID != "" && c.ID == call.ID || call.Key != "" && c.Key == call.Key
			}):
				require.ErrorIs(t, err, state.ErrAnswered)
			default:
				require.ErrorIs(t, err, state.ErrUnknownCall)
			}
		}
		r, _ := st.History().Last()
		var got []state.JSON
		for _, m := range r.ToolCalls {
			got = append(got, state.JSON(m.Text()))
			number := slices.IndexFunc(calls, func(c state.ToolCall) bool { return c.Key == m.Call().Key })
			require.Equal(t, calls[number].ID, m.Call().ID)
			require.Equal(t, calls[number].Name, m.Call().Name)
			require.Equal(t, given[number], state.JSON(m.Text()))
		}
		require.ElementsMatch(t, slices.DeleteFunc(given, func(v state.JSON) bool { return v == "" }), got)
	})
}

func TestAnswerNeedsTheRightsOfAppend(t *testing.T) {
	call := partCalls("a")[0]
	open := func(team state.Team, messages *state.Field[[]state.Message]) *state.State {
		st := state.New(state.MustSchema(team, messages))
		partOpen(t, st.As("a"), "1", call)
		partOpen(t, st.As("b"), "2", call)
		return st
	}
	team := state.Team{"a": {"b", "c"}}
	st := open(team, &state.Field[[]state.Message]{Name: "messages", Owner: "a", Read: state.Public})
	ruleUnchanged(t, st, func() {
		require.EqualError(t, st.As("c").History().Answer(partDone(call)),
			`state: answer a call of "b" in "history": access denied to agent "c"`)
		require.ErrorIs(t, st.As("stranger").History().Answer(partDone(call)), state.ErrDenied)
		require.ErrorIs(t, st.As("").History().Answer(), state.ErrDenied)
	})
	require.NoError(t, st.As("a").History().Answer(partDone(call)), "its own, not the latest")
	require.Equal(t, "[a] =a", partSaid(st))
	require.NoError(t, st.As("b").History().Answer(partDone(call)))
	require.Equal(t, "[a] =a", partSaid(st), "who may not write messages completes the result only")
	require.Equal(t, "=a", partLast(st))

	st = open(team, &state.Field[[]state.Message]{Name: "messages", Owner: "a"})
	before := st.Version()
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.As("c").History().Answer(partDone(call)), state.ErrUnknownCall, "it does not see that there is such a call")
	})
	require.NoError(t, st.As("a").History().Answer(partDone(call)))
	require.Empty(t, ruleChanges(t, st.As("b"), before), "it does not see the result")
	require.NoError(t, st.History().Answer(partDone(call)))
	changes := ruleChanges(t, st.As("b"), before)
	require.Len(t, changes, 1)
	require.Equal(t, state.OpAnswer, changes[0].Op)
	require.Equal(t, []state.ToolResultMessage{partDone(call)}, callkeys.Changes(changes...)[0].Value)
}

// Whose call it is matters only while it is open.
func TestACallThatIsAnsweredIsAnsweredForEveryAgent(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}))
	partOpen(t, st.As("a"), "1", calls...)
	require.NoError(t, st.As("a").History().Answer(partDone(calls[0])))
	ruleUnchanged(t, st, func() {
		for _, agent := range []*state.State{st, st.As("a"), st.As("b")} {
			require.ErrorIs(t, agent.History().Answer(partDone(calls[0])), state.ErrAnswered)
		}
		require.ErrorIs(t, st.As("b").History().Answer(partDone(calls[1])), state.ErrDenied)
	})
}

func TestAnswersInTheJournal(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	require.NoError(t, st.WithCause("why").History().Answer(partDone(calls[1]), partDone(calls[0])))
	changes := ruleChanges(t, st, 1)
	require.Len(t, changes, 2)
	for _, c := range changes {
		require.Equal(t, state.OpAnswer, c.Op)
		require.Equal(t, "why", c.Cause)
	}
	require.Empty(t, changes[0].Field)
	require.Equal(t, []state.ToolResultMessage{partDone(calls[0]), partDone(calls[1])}, callkeys.Changes(changes...)[0].Value)
	require.Equal(t, "messages", changes[1].Field)
	require.Equal(t, []state.Message{partDone(calls[0]), partDone(calls[1])}, callkeys.Changes(changes...)[1].Value)
	past, err := st.At(1)
	require.NoError(t, err)
	require.Equal(t, "[a b]", partSaid(past))
	require.Empty(t, partLast(past))
	require.NoError(t, st.Revert(past))
	require.NoError(t, st.History().Answer(partDone(calls[1])), "it is open again")
	require.Equal(t, "[a b] =b", partSaid(st))
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.NoError(t, back.History().Answer(partDone(calls[0])))
	require.Equal(t, "[a b] =a =b", partSaid(back))
}

// The effects of an answer are small, whatever the length of the conversation.
func TestEffectsOfAnswers(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	for i := range 300 {
		require.NoError(t, st.History().Append(ruleResult(fmt.Sprint(i), "x")))
	}
	partOpen(t, st, "open", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	before := st.Snapshot()
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	effects, err := st.Effects(before)
	require.NoError(t, err)
	var kinds []string
	for _, e := range effects {
		kinds = append(kinds, fmt.Sprint(e.Part, " ", e.Kind, " ", e.N, " ", len(e.Messages), len(e.Results)))
	}
	require.Equal(t, []string{"field insert 901 1 0", "history truncate 300 0 0", "history append 0 0 1"}, kinds)
}

// The handler of the conversation sees answers as it sees what is appended.
func TestAnswersGoThroughTheHandlerOfMessages(t *testing.T) {
	calls := partCalls("a", "b")
	var seen []string
	handler := state.NewHandler("own", func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		seen = append(seen, partShow(current)+" + "+partShow(update))
		return append(current, update...), nil
	})
	refused := false
	st := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: handler, Validate: func([]state.Message) error {
		if refused {
			return errRuleEven
		}
		return nil
	}}))
	partOpen(t, st, "1", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	seen = nil
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	require.Equal(t, []string{"[a b] + =b", "[a b] + =a"}, seen)
	require.Equal(t, "[a b] =a =b and?", partSaid(st))
	partOpen(t, st, "2", calls...)
	refused = true
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.History().Answer(partDone(calls[0])), errRuleEven) })
	refused = false

	replaces := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: state.Replace[[]state.Message]()}))
	partOpen(t, replaces, "1", calls...)
	require.NoError(t, replaces.History().Answer(partDone(calls[1])))
	require.Equal(t, "[a b] =b", partSaid(replaces))
}

// If Messages has lost the call, its answer would be refused by any provider.
func TestAnswersOfCallsThatMessagesHaveLost(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	require.NoError(t, state.Messages.Replace(st, []state.Message{state.UserText("anew")}))
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	require.Equal(t, "anew", partSaid(st))
	require.Equal(t, "=a", partLast(st))
	_, err := state.Messages.Delete(st)
	require.NoError(t, err)
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	require.False(t, state.Messages.Has(st))

	// Messages that have the answer already get no second one.
	partOpen(t, st, "2", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{partDone(calls[0])}))
	require.NoError(t, st.History().Answer(partDone(calls[0]), partDone(calls[1])))
	require.Equal(t, "[a b] =a =b", partSaid(st))
	require.Equal(t, "=a =b", partLast(st))

	// A window keeps open calls for their answers.
	trims := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(2).Handler()}))
	partOpen(t, trims, "1", calls...)
	for i := range 4 {
		require.NoError(t, state.Messages.Set(trims, []state.Message{state.UserText(fmt.Sprint(i))}))
	}
	require.NoError(t, trims.History().Answer(partDone(calls[1])))
	require.NoError(t, trims.History().Answer(partDone(calls[0])))
	require.Equal(t, "[a b] =a =b 3", partSaid(trims))
	require.Empty(t, transcript.Check(state.Messages.GetOr(trims, nil), transcript.Anthropic))
}

func TestLoadSetsResultsAndMessagesAsGiven(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	version := st.Version()
	results := []state.InferenceResult{ruleResult("a", "x"), ruleResult("b", "y")}
	msgs := []state.Message{state.UserText("hi"), state.AssistantText("hello")}
	require.NoError(t, st.History().Load(results, msgs))
	require.Equal(t, version+1, st.Version())
	require.Empty(t, cmp.Diff(results, st.History().Results(), callkeys.Ignored))
	require.Equal(t, msgs, state.Messages.GetOr(st, nil))
	changes := ruleChanges(t, st, version)
	require.Len(t, changes, 2)
	require.Equal(t, []state.Op{state.OpReset, state.OpReplace}, []state.Op{changes[0].Op, changes[1].Op})
	require.Equal(t, any(msgs), changes[1].Value)
	msgs[0] = state.UserText("changed")
	require.Equal(t, "hi hello", partSaid(st))

	past, err := st.At(version)
	require.NoError(t, err)
	require.Equal(t, "0 1", ruleIDs(past.History().Results()))
	require.NoError(t, st.History().Load(nil, nil))
	require.Zero(t, st.History().Len())
	require.Empty(t, partSaid(st))
}

func TestLoadIsAllOrNothing(t *testing.T) {
	schema := state.MustSchema(state.Team{"a": {"b"}}, state.Limits{Results: 2, ValueBytes: 1_000}, &state.Field[[]state.Message]{
		Name: "messages", Owner: "a", Read: state.Public, Handler: transcript.KeepLast(1).Handler(),
		Validate: func(msgs []state.Message) error {
			if len(msgs) == 4 {
				return errRuleEven
			}
			return nil
		},
	})
	st := state.New(schema)
	require.NoError(t, st.As("a").History().Append(ruleResult("1", "a")))
	hi := state.UserText("hi")
	require.NoError(t, st.As("a").History().Load(st.History().Results(), []state.Message{hi, hi}))
	require.Equal(t, "hi hi", partSaid(st), "as given: no handler is called")
	for name, c := range map[string]struct {
		as      string
		results []state.InferenceResult
		msgs    []state.Message
		want    error
	}{
		"no right":          {"b", nil, nil, state.ErrDenied},
		"of another":        {"a", []state.InferenceResult{{Agent: "b"}}, nil, state.ErrDenied},
		"not valid":         {"a", nil, []state.Message{hi, hi, hi, hi}, errRuleEven},
		"no message":        {"a", nil, []state.Message{nil}, state.ErrWrongType},
		"no message of two": {"a", []state.InferenceResult{ruleResult("2", "a")}, []state.Message{nil, state.TextMessage{}}, state.ErrWrongType},
		"no message of a result": {"a", []state.InferenceResult{{
			Agent: "a", Output: []state.Message{state.ToolCalls(ruleCall), state.ToolCallMessage{}}, ToolCalls: []state.ToolResultMessage{{}},
		}}, nil, state.ErrWrongType},
		"no message of one":  {"a", []state.InferenceResult{{Agent: "a", Output: []state.Message{nil}}}, nil, state.ErrWrongType},
		"too many results":   {"a", []state.InferenceResult{{Agent: "a"}, {Agent: "a"}, {Agent: "a"}}, nil, state.ErrLimitExceeded},
		"messages too large": {"a", nil, []state.Message{state.UserText(strings.Repeat("x", 2_000))}, state.ErrLimitExceeded},
	} {
		ruleUnchanged(t, st, func() {
			require.ErrorIs(t, st.As(c.as).History().Load(c.results, c.msgs), c.want, name)
		})
	}
	require.ErrorIs(t, st.Snapshot().History().Load(nil, nil), state.ErrReadOnly)
	fork := st.Fork()
	require.NoError(t, fork.History().Load(nil, nil))
	require.NoError(t, state.Messages.Set(st, []state.Message{hi}))
	require.ErrorIs(t, st.Join(fork), state.ErrConflict, "it overwrites")
}

// manyCalls returns a message of n calls.
func manyCalls(n int) state.ToolCallMessage {
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
	}
	return state.ToolCalls(calls...)
}

// A message has at most 256 calls, and so has the output of a result, whatever
// the Limits are and whichever way it comes.
func TestMoreThan256CallsAreALimitError(t *testing.T) {
	most, more := manyCalls(256), manyCalls(257)
	output := func(msgs ...state.Message) state.InferenceResult { return state.InferenceResult{Output: msgs} }
	list := func(msgs ...state.Message) []byte {
		data, err := json.Marshal(msgs)
		require.NoError(t, err)
		return data
	}
	schema := state.MustSchema(state.Limits{NameBytes: -1, ValueBytes: -1, Depth: -1, Keys: -1, Results: -1, Journal: -1})
	// exported returns what Export would write if more were allowed.
	exported := func(r state.InferenceResult, replace, by string) []byte {
		st := state.New(schema)
		require.NoError(t, st.History().AppendOutside(r))
		data, err := st.Export()
		require.NoError(t, err)
		changed := strings.Replace(string(data), replace, by, 1)
		require.NotEqual(t, string(data), changed)
		return []byte(changed)
	}
	imports := func(data []byte) error { _, err := state.Import(schema, data); return err }
	const oneCall, twoCalls = `{"type":"tool","id":"call_255",`, `{"type":"tool","id":"","name":"f"},{"type":"tool","id":"call_255",`
	type write func(st *state.State) error
	for name, do := range map[string]write{
		"Append":        func(st *state.State) error { return st.History().Append(output(more)) },
		"AppendOutside": func(st *state.State) error { return st.History().AppendOutside(output(more)) },
		"two messages":  func(st *state.State) error { return st.History().Append(output(most, manyCalls(1))) },
		"in the history": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{History: []state.Message{more}})
		},
		"in the prompt": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{Prompt: []state.Message{more}})
		},
		"Reset":         func(st *state.State) error { return st.History().Reset([]state.InferenceResult{output(more)}) },
		"Load messages": func(st *state.State) error { return st.History().Load(nil, []state.Message{more}) },
		"Set":           func(st *state.State) error { return state.Messages.Set(st, []state.Message{more}) },
		"DecodeMessage": func(*state.State) error {
			_, err := state.DecodeMessage([]byte(more.Raw()))
			return err
		},
		"DecodeMessages": func(*state.State) error {
			_, err := state.DecodeMessages(list(most, more))
			return err
		},
		"Unmarshal": func(*state.State) error { return json.Unmarshal([]byte(more.Raw()), new(state.ToolCallMessage)) },
		"Unmarshal a result": func(*state.State) error {
			return json.Unmarshal(must(json.Marshal(output(more))), new(state.InferenceResult))
		},
		"Import": func(*state.State) error { return imports(exported(output(most), oneCall, twoCalls)) },
		"Import a history": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most}}, oneCall, twoCalls))
		},
		"Import two messages": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most, manyCalls(1)}}, `"history":`, `"output":`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(schema)
			require.NoError(t, st.History().Append(output(most)))
			ruleUnchanged(t, st, func() {
				err := do(st)
				var limit *state.LimitError
				require.ErrorAs(t, err, &limit)
				require.Equal(t, "Calls", limit.Name)
				require.Equal(t, 256, limit.Limit)
				require.Equal(t, 257, limit.Got)
			})
		})
	}
}

// The usage of a result is a part of it, wherever the result goes.
func TestUsageOfResults(t *testing.T) {
	result := state.InferenceResult{Raw: "r", Usage: state.Usage{Input: 9, Output: 4, CacheRead: 3, CacheWrite: 2, Reasoning: 1}, CreatedAt: time.Unix(1, 0)}
	st := state.New(nil)
	require.NoError(t, st.History().AppendOutside(result))
	pushed, _ := st.History().At(0)
	require.Equal(t, result.Usage, pushed.Usage)

	data, err := st.Export()
	require.NoError(t, err)
	require.Contains(t, string(data), `"usage":{"input":9,"output":4,"cache_read":3,"cache_write":2,"reasoning":1}`)
	imported, err := state.Import(nil, data)
	require.NoError(t, err)
	read, _ := imported.History().At(0)
	require.Equal(t, result.Usage, read.Usage)
	for _, wrong := range []string{`"input":-9`, `"input":"9"`, `"inputs":9`} {
		bad := strings.Replace(string(data), `"input":9`, wrong, 1)
		_, err := state.Import(nil, []byte(bad))
		require.Error(t, err, wrong)
	}

	text, err := json.Marshal(result)
	require.NoError(t, err)
	var again state.InferenceResult
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, result.Usage, again.Usage)

	result.Usage.Reasoning = -1
	require.ErrorIs(t, st.History().AppendOutside(result), state.ErrWrongType)
}

// How an answer has ended is a part of its result, wherever the result goes.
func TestStopOfResults(t *testing.T) {
	result := state.InferenceResult{Stop: state.StopLength, StopWord: "max_tokens", CreatedAt: time.Unix(1, 0)}
	same := func(r state.InferenceResult) {
		t.Helper()
		require.Equal(t, []string{"length", "max_tokens"}, []string{string(r.Stop), r.StopWord})
	}
	st := state.New(nil)
	require.NoError(t, st.History().AppendOutside(result))
	pushed, _ := st.History().At(0)
	same(pushed)
	data, err := st.Export()
	require.NoError(t, err)
	imported, err := state.Import(nil, data)
	require.NoError(t, err)
	read, _ := imported.History().At(0)
	same(read)
	text, err := json.Marshal(result)
	require.NoError(t, err)
	require.Contains(t, string(text), `"stop":"length","stop_word":"max_tokens"`)
	var again state.InferenceResult
	require.NoError(t, json.Unmarshal(text, &again))
	same(again)

	require.ErrorIs(t, st.History().AppendOutside(state.InferenceResult{StopWord: "\xff"}), state.ErrWrongType)
	text, err = json.Marshal(state.InferenceResult{CreatedAt: time.Unix(1, 0)})
	require.NoError(t, err)
	require.NotContains(t, string(text), "stop")
}

// Two results that differ in one member are two: a revert brings the first back.
func TestHistoryResultsDifferInEachMember(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := state.InferenceResult{ID: "r", Agent: "a", Input: "i", Raw: `{"a":1}`, StartedAt: at, CreatedAt: at, Usage: state.Usage{Input: 1}}
	for name, change := range map[string]func(r *state.InferenceResult){
		"ID":        func(r *state.InferenceResult) { r.ID = "other" },
		"Agent":     func(r *state.InferenceResult) { r.Agent = "other" },
		"Input":     func(r *state.InferenceResult) { r.Input = "other" },
		"Raw":       func(r *state.InferenceResult) { r.Raw = `{"a":2}` },
		"Usage":     func(r *state.InferenceResult) { r.Usage.Output = 2 },
		"Stop":      func(r *state.InferenceResult) { r.Stop = state.StopEnd },
		"StopWord":  func(r *state.InferenceResult) { r.StopWord = "stop" },
		"StartedAt": func(r *state.InferenceResult) { r.StartedAt = at.Add(-time.Second) },
		"CreatedAt": func(r *state.InferenceResult) { r.CreatedAt = at.Add(time.Second) },
		"Prompt":    func(r *state.InferenceResult) { r.Prompt = []state.Message{state.UserText("p")} },
		"Output":    func(r *state.InferenceResult) { r.Output = []state.Message{state.AssistantText("o")} },
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(nil)
			require.NoError(t, st.History().Append(first))
			snapshot := st.Snapshot()
			want, ok := st.History().Last()
			require.True(t, ok)
			require.NoError(t, st.History().Reset(nil))
			other := first
			change(&other)
			require.NoError(t, st.History().Append(other))
			require.NoError(t, st.Revert(snapshot))
			got, ok := st.History().Last()
			require.True(t, ok)
			require.Equal(t, want, got)
		})
	}
}

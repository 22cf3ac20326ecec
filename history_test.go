package state_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
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
	require.Equal(t, []state.Message{state.UserText("hello"), r.Output[0], r.Output[1], r.ToolCalls[0]}, got)
	last, ok := st.History().Last()
	require.True(t, ok)
	require.Empty(t, cmp.Diff(r, last), "every member, Raw byte for byte")
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
		all = append(all, fmt.Sprint(i, r.ID))
		require.NoError(t, st.History().Append(ruleResult("later", "x")), "no lock is held")
	}
	require.Equal(t, []string{"00", "11", "22", "33"}, []string{strings.ReplaceAll(all[0], " ", ""), strings.ReplaceAll(all[1], " ", ""), strings.ReplaceAll(all[2], " ", ""), strings.ReplaceAll(all[3], " ", "")})
	require.Len(t, all, 4, "one moment")
	require.Equal(t, "0 1 2 3 later later later later", ruleIDs(h.Results()))
	for range h.All() {
		break
	}
	empty := state.New(nil).History()
	_, ok := empty.Last()
	require.False(t, ok)
	require.Equal(t, []state.InferenceResult{}, empty.Results())
}

func TestPopRemovesTheLastResultOnly(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	said := state.ListLen(st, state.Messages)
	v := st.Version()
	r, ok, err := st.History().Pop()
	require.NoError(t, err)
	require.True(t, ok)
	require.Empty(t, cmp.Diff(ruleResult("1", "agent 1"), r))
	require.Equal(t, v+1, st.Version())
	require.Equal(t, "0", ruleIDs(st.History().Results()))
	require.Equal(t, said, state.ListLen(st, state.Messages), "messages stay")
	_, ok, err = st.History().Pop()
	require.NoError(t, err)
	require.True(t, ok)
	ruleUnchanged(t, st, func() {
		_, ok, err = st.History().Pop()
		require.NoError(t, err)
		require.False(t, ok)
	})
	require.NoError(t, st.History().Append(ruleResult("2", "a")))
	require.Equal(t, "2", ruleIDs(st.History().Results()))
}

func TestResetReplacesTheStackOnly(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	said := state.ListLen(st, state.Messages)
	v := st.Version()
	require.NoError(t, st.History().Reset([]state.InferenceResult{ruleResult("a", "x"), ruleResult("b", "y")}))
	require.Equal(t, v+1, st.Version())
	require.Empty(t, cmp.Diff([]state.InferenceResult{ruleResult("a", "x"), ruleResult("b", "y")}, st.History().Results()))
	require.Equal(t, said, state.ListLen(st, state.Messages), "messages stay")
	require.NoError(t, st.History().Reset(nil))
	require.Zero(t, st.History().Len())
}

func TestFormatJoinsWhatItMakesOfEachResult(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	r := ruleResult("0", "")
	one := []state.Message{r.Output[0], r.Output[1], r.ToolCalls[0]}
	require.Equal(t, slices.Concat(one, one), st.History().Format(nil), "output, then tool calls")
	require.Equal(t, slices.Concat(one, one), st.History().Format(nil), "and it can be asked again")
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
		for i, m := range slices.Concat(r.History, r.Output, state.Messages.Or(st, nil)) {
			require.Equal(t, said[i%3].Raw(), m.Raw())
		}
	}
}

// The tests of this file prove what the stack of results costs.

// A result whose history is the conversation as it is adds one run of messages,
// however the values were made, and whatever texts are repeated elsewhere.
func TestAHistoryThatContinuesTheLastOneIsOneRun(t *testing.T) {
	for _, made := range []string{"the same values", "equal values"} {
		st := state.New(nil)
		for i := range 50 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprint("question ", i))}))
			said := state.Messages.Or(st, nil)
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
			require.NoError(t, st.History().Push(state.InferenceResult{Agent: agent, Output: said}))
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
	msgs, err := transcript.Answer(state.Messages.Or(st, nil), state.ToolError(calls[0], "cut off"))
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
			msgs := state.Messages.Or(st, nil)
			require.Equal(t, idsOf(transcript.Pending(msgs)), idsOf(st.History().Pending()), "seed %d", seed)
		}
	}
}

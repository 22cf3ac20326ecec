package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/work"
)

type docItem struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

var (
	docTitle   = &state.Field[string]{Name: "title"}
	docTotal   = &state.Field[int]{Name: "total", Handler: state.Sum[int]()}
	docLog     = &state.Field[[]string]{Name: "log"}
	docRecent  = &state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](3)}
	docItems   = &state.Field[[]docItem]{Name: "items", Handler: state.MergeByID[[]docItem](func(i docItem) string { return i.ID })}
	docLabels  = &state.Field[map[string]string]{Name: "labels", Handler: state.MergeMap[map[string]string]()}
	docToken   = &state.Field[string]{Name: "token", Secret: true}
	docScratch = &state.Field[[]string]{Name: "scratch", Ephemeral: true}
	docNote    = &state.Field[any]{Name: "note"}
	docSchema  = state.MustSchema(state.AllowUndeclared, docTitle, docTotal, docLog, docRecent, docItems, docLabels, docToken, docNote, docScratch)

	docTrim = transcript.KeepLast(4).Handler()
)

// plainState is an exported state, without regard to how messages are stored.
type plainState struct {
	Version      uint64
	Fields, Keys map[string]string
	Conversation *[]string
	Results      []plainResult
}

type plainResult struct {
	form.Result
	Messages [4][]string
}

func plainOf(t require.TestingT, s *state.State) plainState {
	data, err := s.Export()
	require.NoError(t, err)
	var f form.State
	require.NoError(t, json.Unmarshal(data, &f))
	p := plainState{Version: f.Version, Fields: map[string]string{}, Keys: map[string]string{}}
	for _, v := range f.Fields {
		p.Fields[v.Name] = string(v.Value)
	}
	for _, v := range f.Keys {
		p.Keys[v.Name] = string(v.Value)
	}
	texts := func(runs []form.Run) (list []string) {
		for _, r := range runs {
			for _, m := range f.Messages[r.From:r.To] {
				list = append(list, string(m))
			}
		}
		return list
	}
	if f.Conversation != nil {
		list := texts(*f.Conversation)
		p.Conversation = &list
	}
	for _, r := range f.Results {
		q := plainResult{Result: r, Messages: [4][]string{texts(r.Prompt), texts(r.History), texts(r.Output), texts(r.ToolCalls)}}
		q.Prompt, q.History, q.Output, q.ToolCalls = nil, nil, nil, nil
		p.Results = append(p.Results, q)
	}
	return p
}

// stored returns effects as a record stores them.
func stored(t require.TestingT, effects []state.Effect) []state.Effect {
	data, err := jsontext.Marshal(effects)
	require.NoError(t, err)
	var again []state.Effect
	require.NoError(t, json.Unmarshal(data, &again))
	require.Empty(t, cmp.Diff(effects, again))
	return again
}

// stateWriter makes random writes.
type stateWriter struct {
	*rapid.T
	calls int
}

var docWords = rapid.SampledFrom([]string{"a", "b", "c", "", "<&>\u00e9"})

func (t *stateWriter) message() state.Message {
	if rapid.IntRange(0, 3).Draw(t.T, "call") == 0 {
		t.calls++
		return state.ToolCalls(state.ToolCall{ID: fmt.Sprint("call", t.calls), Name: "f", Input: "{}"})
	}
	return state.UserText(docWords.Draw(t.T, "text"))
}

func (t *stateWriter) result(st *state.State) state.InferenceResult {
	r := state.InferenceResult{
		ID: docWords.Draw(t.T, "id"), Input: "in", Prompt: []state.Message{state.SystemText("You help.")},
		Output: []state.Message{t.message()}, Raw: rapid.SampledFrom([]string{"", "{}", "\xff"}).Draw(t.T, "raw"),
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
	}
	if rapid.Bool().Draw(t.T, "started") {
		r.StartedAt = r.CreatedAt.Add(-time.Second)
		r.Usage = state.Usage{Input: 9, Output: 4}
		r.Stop, r.StopWord = state.StopLength, "max_tokens"
	}
	r.History = state.Messages.GetOr(st, nil)
	if m, ok := r.Output[0].(state.ToolCallMessage); ok && rapid.Bool().Draw(t.T, "answered") {
		r.ToolCalls = []state.ToolResultMessage{state.ToolResult(m.Calls()[0], `"done"`)}
	}
	return r
}

func (t *stateWriter) write(st *state.State, snapshot *state.State) {
	word := docWords.Draw(t.T, "word")
	var err error
	switch rapid.IntRange(0, 22).Draw(t.T, "op") {
	case 0:
		err = docTitle.Set(st, word)
	case 1:
		err = docTotal.Set(st, 1)
	case 2:
		err = docLog.Set(st, []string{word, word})
	case 3:
		err = docLog.SetWith(st, []string{word}, state.Union[[]string]())
	case 4:
		err = docRecent.Set(st, []string{word})
	case 5:
		err = docItems.Set(st, []docItem{{word, t.calls}})
	case 6:
		err = docLabels.Set(st, map[string]string{word: "x"})
	case 7:
		err = docToken.Set(st, word+"secret")
	case 8:
		err = docScratch.Set(st, []string{word})
	case 9:
		err = st.KV().Set("key:"+word, []any{word, nil})
	case 10:
		_, err = st.KV().Delete(rapid.SampledFrom([]string{"title", "log", "key a", "messages", "items"}).Draw(t.T, "name"))
	case 11, 12:
		err = state.Messages.Set(st, []state.Message{t.message(), t.message()})
	case 13:
		err = state.Messages.SetWith(st, []state.Message{t.message()}, docTrim)
	case 14:
		err = state.Messages.Update(st, func(msgs []state.Message) ([]state.Message, error) {
			at := rapid.IntRange(0, len(msgs)).Draw(t.T, "at")
			return slices.Insert(msgs, at, t.message()), nil
		})
	case 15, 16, 17:
		err = st.History().Append(t.result(st))
	case 18:
		_, _, err = st.History().Pop()
	case 19:
		results := st.History().Results()
		err = st.History().Reset(results[min(1, len(results)):])
	case 20:
		err = st.Revert(snapshot)
	case 21:
		err = state.Messages.Replace(st, nil)
	case 22:
		branch := st.Fork()
		if err = docLog.Set(branch, []string{"branch"}); err == nil {
			err = st.Join(branch)
		}
	}
	require.NoError(t, err)
}

// After random writes, the document of all effects equals the state, even after
// a rollback and after it was shortened.
func TestDocumentFollowsTheState(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		t := &stateWriter{T: rt}
		d := New()
		st := load(t, d)
		snapshot, base, clone := st.Snapshot(), d.Clone(), d.Clone()
		for range rapid.IntRange(1, 12).Draw(rt, "commits") {
			saved := st.Snapshot()
			for range rapid.IntRange(0, 4).Draw(rt, "writes") {
				t.write(st, snapshot)
			}
			effects, err := d.Save(saved, st.Snapshot(), nil)
			require.NoError(t, err)
			require.NoError(t, d.Apply(stored(t, effects)))
			again := load(t, d)
			require.Empty(t, cmp.Diff(plainOf(t, st), plainOf(t, again)))
			require.NotContains(t, string(d.Encode()), "scratch")
			load(t, base)
			load(t, clone)

			switch rapid.IntRange(0, 7).Draw(rt, "then") {
			case 0:
				snapshot = st.Snapshot()
			case 1: // another process continues
				d, err = Decode(d.Encode())
				require.NoError(t, err)
				st = again
				snapshot, base = st.Snapshot(), d.Clone()
			case 2:
				version := st.Version()
				require.NoError(t, d.Apply(stored(t, d.Revert(base))))
				st = load(t, d)
				require.GreaterOrEqual(t, st.Version(), version)
				require.Equal(t, withoutVersion(base), withoutVersion(d))
				snapshot = st.Snapshot()
			case 3:
				before := state.Messages.GetOr(st, nil)
				effects, err := d.EndRun(empty, "")
				require.NoError(t, err)
				require.Equal(t, len(transcript.Pending(before)) == 0, len(effects) == 0)
				require.NoError(t, d.Apply(stored(t, effects)))
				st = load(t, d)
				if len(effects) > 0 {
					var answers []state.ToolResultMessage
					for _, c := range transcript.Pending(before) {
						answers = append(answers, state.ToolError(state.ToolCall{ID: c.ID, Name: c.Name}, origin.NoResult))
					}
					want, err := transcript.Answer(before, answers...)
					require.NoError(t, err)
					require.Empty(t, transcript.Pending(want))
					require.Equal(t, raws(want), raws(state.Messages.GetOr(st, nil)))
				}
				snapshot = st.Snapshot()
			case 4:
				shorten(t, d, rapid.IntRange(-1, 5).Draw(rt, "n"), rapid.IntRange(-1, 3).Draw(rt, "m"))
				st = load(t, d)
				snapshot = st.Snapshot()
			case 5: // with the index that the last commit has needed
				clone = d.Clone()
			}
		}
	})
}

// load returns the State in a document. The document may know its conversation
// and more: all of it is that of a document that has to decode it.
func load(t require.TestingT, d *Document) *state.State {
	require.NoError(t, d.Check())
	s, moved, err := d.Load(docSchema)
	require.NoError(t, err)
	cold, err := Decode(d.Encode())
	require.NoError(t, err)
	decoded, decodedMoved, err := cold.Load(docSchema)
	require.NoError(t, err)
	require.Equal(t, plainOf(t, decoded), plainOf(t, s))
	require.Equal(t, decodedMoved, moved)
	require.Equal(t, decoded.Version(), s.Version())
	effects, err := s.Snapshot().Effects(decoded)
	require.NoError(t, err)
	require.Empty(t, effects)
	return s
}

func raws(msgs []state.Message) []string {
	texts := make([]string, len(msgs))
	for i, m := range msgs {
		texts[i] = string(m.Raw())
	}
	return texts
}

// commit stores what was written to a state. It also returns the size of the
// effects.
func commit(t require.TestingT, d *Document, from, to *state.State) (bytes int, effects []state.Effect) {
	effects, err := d.Save(from, to, nil)
	require.NoError(t, err)
	data, err := jsontext.Marshal(effects)
	require.NoError(t, err)
	require.NoError(t, d.Apply(effects))
	return len(data), effects
}

// A history is one range of the conversation, even if its texts occur earlier.
func TestHistoryIsFoundAlongTheConversation(t *testing.T) {
	d := New()
	st := load(t, d)
	for i := range 20 {
		saved := st.Snapshot()
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("ok?")}))
		said := state.Messages.GetOr(st, nil)
		require.NoError(t, st.History().Append(state.InferenceResult{
			History: said[max(0, len(said)-6):], Output: []state.Message{state.AssistantText("ok")},
			CreatedAt: time.Unix(int64(i), 0).UTC(),
		}))
		commit(t, d, saved, st.Snapshot())
	}
	require.Contains(t, string(part(d, PartConversation)), `"history":[[34,40]],"output":[[`)
	require.Equal(t, plainOf(t, st), plainOf(t, load(t, d)))
}

func TestMessagesOfResultsAreStoredOnce(t *testing.T) {
	d := New()
	st := load(t, d)
	call := state.ToolCalls(state.ToolCall{ID: "1", Name: "f", Input: "{}"})
	append1 := func() {
		require.NoError(t, st.History().Append(state.InferenceResult{
			Prompt: []state.Message{state.SystemText("You help."), state.SystemText("Be short.")}, History: state.Messages.GetOr(st, nil),
			Output: []state.Message{call}, ToolCalls: []state.ToolResultMessage{state.ToolResult(call.Calls()[0], "1")},
			CreatedAt: time.Unix(0, 0).UTC(),
		}))
	}
	saved := st.Snapshot()
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hi"), state.UserText("ok"), state.UserText("hi")}))
	append1()
	commit(t, d, saved, st.Snapshot())
	saved = st.Snapshot()
	append1()
	commit(t, d, saved, st.Snapshot())
	require.Equal(t, `{"entries":[1,2,3,4,5,6,7],"results":[`+
		`{"prompt":[[-1,0],[-2,-1]],"history":[[1,4]],"output":[[4,5]],"tool_calls":[[5,6]],"created_at":"1970-01-01T00:00:00Z"},`+
		`{"prompt":[[-1,0],[-2,-1]],"history":[[1,6]],"output":[[6,7]],"tool_calls":[[7,8]],"created_at":"1970-01-01T00:00:00Z"}],"version":3}`,
		string(part(d, PartConversation)))

	// What replaces a message gets a number, and nothing else.
	saved = st.Snapshot()
	msgs := state.Messages.GetOr(st, nil)
	msgs[1] = state.UserText("other")
	require.NoError(t, state.Messages.Replace(st, msgs))
	_, effects := commit(t, d, saved, st.Snapshot())
	require.Equal(t, 1, len(slices.DeleteFunc(effects, func(e state.Effect) bool { return e.Part != PartMessage })))
}

// A number whose message is replaced stands for the new message.
func TestTimesOfResultsAreNotTakenForSecrets(t *testing.T) {
	result := `[{"id":"2026","agent":"","started_at":"2026-01-02T03:04:04.5Z","created_at":"2026-01-02T03:04:05Z"}]`
	masked := RedactConversation(state.Effect{Field: "results", Value: state.JSON(result)}, func(text string) string {
		return strings.ReplaceAll(text, "2026", "[SECRET]")
	})
	require.Equal(t, strings.Replace(result, `"id":"2026"`, `"id":"[SECRET]"`, 1), string(masked))
}

func TestNumbersStandForWhatIsThere(t *testing.T) {
	d, err := Decode([]byte(`{"message":{"1":{"type":"text","role":"user","content":"a"}},"conversation":{"entries":[]}}`))
	require.NoError(t, err)
	st := load(t, d)
	require.NoError(t, d.Apply([]state.Effect{{Part: PartMessage, Field: "1", Kind: state.EffectSet, Value: state.UserText("b").Raw()}}))
	saved := st.Snapshot()
	require.NoError(t, st.History().Append(state.InferenceResult{Prompt: []state.Message{state.UserText("a")}, Output: []state.Message{state.UserText("b")}}))
	commit(t, d, saved, st.Snapshot())
	require.Equal(t, plainOf(t, st), plainOf(t, load(t, d)))
}

func part(d *Document, name string) state.JSON {
	c := New()
	for field, v := range d.fields(name) {
		c.put(name, field, v)
	}
	text := string(c.Encode())
	return state.JSON(text[len(`{"":`)+len(name) : len(text)-1])
}

// Content for which the schema has no place stays when other content is
// changed.
func TestUnknownFieldsStay(t *testing.T) {
	d, err := Decode([]byte(`{"field":{"gone":[1,{"a":1.0}],"messages":[],"note":1,"scratch":["x"],"title":"t"},` +
		`"key":{"":1,"a":null,"line\nbreak":2,"log":["l"],"messages":3,"note":2,"scratch":1,"total":"no number"},` +
		`"new":{"x":{}},"message":{"7":{"type":"text","role":"user","content":"hi"}},"conversation":{"other":1}}`))
	require.NoError(t, err)
	st := load(t, d)
	require.Equal(t, plainState{
		Fields: map[string]string{"title": `"t"`, "log": `["l"]`, "note": "1"}, Keys: map[string]string{"a": "null"},
	}, plainOf(t, st))
	require.False(t, docScratch.Has(st))

	saved := st.Snapshot()
	require.NoError(t, docLog.Set(st, []string{"m"}))
	require.NoError(t, docTotal.Set(st, 2))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hi")}))
	commit(t, d, saved, st.Snapshot())
	saved = st.Snapshot()
	_, err = docTitle.Delete(st)
	require.NoError(t, err)
	commit(t, d, saved, st.Snapshot())
	require.Equal(t, `{"conversation":{"entries":[8],"other":1,"version":4},"field":{"gone":[1,{"a":1.0}],"log":["l","m"],"messages":[],"note":1,"scratch":["x"],"total":2},`+
		`"key":{"":1,"a":null,"line\nbreak":2,"messages":3,"note":2,"scratch":1},`+
		`"message":{"7":{"type":"text","role":"user","content":"hi"},"8":{"type":"text","role":"user","content":"hi"}},`+
		`"new":{"x":{}}}`, string(d.Encode()))
}

// A field that was an undeclared key moves when it is written.
func TestKeyThatIsDeclaredMoves(t *testing.T) {
	for name, c := range map[string]struct {
		key   string
		write func(*state.State) error
		want  string
	}{
		"appended":         {`["a"]`, func(s *state.State) error { return docLog.Set(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["a","b"]}}`},
		"shortened":        {`["a","b"]`, func(s *state.State) error { return docLog.Replace(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["b"]}}`},
		"replaced":         {`["a"]`, func(s *state.State) error { return docLog.Replace(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["b"]}}`},
		"deleted":          {`["a"]`, func(s *state.State) error { _, err := docLog.Delete(s); return err }, `{"conversation":{"version":1}}`},
		"not touched":      {`["a"]`, func(s *state.State) error { return docTitle.Set(s, "t") }, `{"conversation":{"version":1},"field":{"title":"t"},"key":{"log":["a"]}}`},
		"of another type":  {`{"a":1}`, func(s *state.State) error { return docLog.Set(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["b"]}}`},
		"null":             {`null`, func(s *state.State) error { return docLog.Set(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["b"]}}`},
		"there as a field": {`["a"],"x":0},"field":{"log":["f"]},"y":{"z":0`, func(s *state.State) error { return docLog.Set(s, []string{"b"}) }, `{"conversation":{"version":1},"field":{"log":["f","b"]},"key":{"x":0},"y":{"z":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decode([]byte(`{"key":{"log":` + c.key + `}}`))
			require.NoError(t, err)
			st := load(t, d)
			saved := st.Snapshot()
			require.NoError(t, c.write(st))
			commit(t, d, saved, st.Snapshot())
			require.Equal(t, c.want, string(d.Encode()))
			require.Equal(t, plainOf(t, st), plainOf(t, load(t, d)))
		})
	}
}

func TestContentThatIsNoState(t *testing.T) {
	hi := `"message":{"1":{"type":"text","role":"user","content":"hi"},"3":{"type":"text","role":"user","content":"ho"}}`
	for name, c := range map[string]struct {
		content, says string
		corrupt       bool
	}{
		"field of another type":     {`{"field":{"total":"hidden"}}`, `"total": want int`, false},
		"null for a list's element": {`{"field":{"items":[{"id":"a","n":"hidden"}]}}`, `"items": $[0].n`, false},
		"message without number":    {`{"message":{"01":{}}}`, `$.message["01"]`, true},
		"invalid message":           {`{"message":{"1":{"type":"text","role":7,"content":"hidden"}}}`, "messages[0]", true},
		"conversation not a list":   {`{"conversation":{"entries":{}}}`, "$.conversation.entries", true},
		"conversation of texts":     {`{"conversation":{"entries":["1"]}}`, "$.conversation.entries", true},
		"conversation of nothing":   {`{` + hi + `,"conversation":{"entries":[1,2,3]}}`, "$.conversation.entries: no messages from 1 to 4", true},
		"results not a list":        {`{"conversation":{"results":null}}`, "$.conversation.results", true},
		"invalid result":            {`{"conversation":{"results":[{"created_at":"hidden"}]}}`, "$.conversation.results[0]", true},
		"run of nothing":            {`{` + hi + `,"conversation":{"results":[{"prompt":[[1,1]]}]}}`, "$.conversation.results[0]: no messages from 1 to 1", true},
		"run back":                  {`{` + hi + `,"conversation":{"results":[{"prompt":[[1,-9223372036854775808]]}]}}`, "$.conversation.results[0]", true},
		"run over a gap":            {`{` + hi + `,"conversation":{"results":[{},{"history":[[1,3]]}]}}`, "$.conversation.results[1]: no messages from 1 to 3", true},
		"run into nowhere":          {`{` + hi + `,"conversation":{"results":[{"history":[[3,9223372036854775807]]}]}}`, "$.conversation.results[0]", true},
		"text for a tool's result":  {`{` + hi + `,"conversation":{"results":[{"tool_calls":[[1,2]]}]}}`, "tool_calls", true},
		"negative version":          {`{"conversation":{"version":-1}}`, "$.conversation.version", true},
		"version is too much":       {`{"conversation":{"version":9223372036854775808}}`, "$.conversation.version", true},
	} {
		t.Run(name, func(t *testing.T) {
			var st *state.State
			d, err := Decode([]byte(c.content))
			if err == nil {
				st, _, err = d.Load(docSchema)
			}
			require.ErrorContains(t, err, c.says)
			require.True(t, strings.HasPrefix(err.Error(), "workspace: "))
			require.NotContains(t, err.Error(), "hidden")
			require.Nil(t, st)
			if c.corrupt {
				require.ErrorIs(t, err, work.ErrCorrupt)
			} else {
				require.NotErrorIs(t, err, work.ErrCorrupt)
				require.ErrorIs(t, err, state.ErrWrongType)
			}
		})
	}
	few, err := Decode([]byte(`{"conversation":{"results":[{},{}]}}`))
	require.NoError(t, err)
	_, _, err = few.Load(state.MustSchema(state.Limits{Results: 1}))
	require.ErrorIs(t, err, state.ErrLimitExceeded)
	require.NotErrorIs(t, err, work.ErrCorrupt)
}

// Effects have the agent that wrote; secrets are not masked.
func TestEffectsAreSigned(t *testing.T) {
	d := New()
	st := load(t, d)
	saved := st.Snapshot()
	require.NoError(t, docToken.Set(st, "s3cret"))
	_, effects := commit(t, d, saved, st.Snapshot())
	require.Equal(t, []state.Effect{
		{Part: "field", Field: "token", Kind: "set", Value: `"s3cret"`},
		{Part: "secret", Field: "token", Kind: "set", Value: `true`},
		{Part: "conversation", Field: "version", Kind: "set", Value: "1"},
	}, effects)

	team := state.MustSchema(state.Team{"a": nil}, &state.Field[[]int]{Name: "n", Owner: "a"})
	s, _, err := New().Load(team)
	require.NoError(t, err)
	saved = s.Snapshot()
	require.NoError(t, s.As("a").KV().Set("n", []int{1}))
	effects, err = New().Save(saved, s.Snapshot(), nil)
	require.NoError(t, err)
	require.Equal(t, state.Effect{Part: "field", Field: "n", Kind: "set", Value: "[1]", Agent: "a"}, effects[0])
	_, err = New().Save(saved, s.As("a"), nil)
	require.ErrorIs(t, err, state.ErrDenied)
}

// Concurrent goroutines may read and clone a document, and change its clones.
func TestDocumentIsReadByMany(t *testing.T) {
	d := New()
	st := load(t, d)
	saved := st.Snapshot()
	require.NoError(t, state.Messages.Set(st, []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "f"})}))
	commit(t, d, saved, st.Snapshot())
	d = d.Clone()
	errs := make(chan error)
	for range 4 {
		go func() {
			_, _, err := d.Load(docSchema)
			if err == nil {
				_, err = d.EndRun(empty, "")
			}
			if err == nil {
				_, err = d.Clone().Shorten(0, 0)
			}
			if err == nil {
				err = d.Clone().Apply(d.Revert(New()))
			}
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
}

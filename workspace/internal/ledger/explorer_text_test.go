package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// text is the content of a world in the plainest form. It does not change.
type text struct {
	lists  map[string][]string
	values map[string]string
	// entries are the numbers of messages: those of the user, calls of tools,
	// and their results.
	entries   []int
	results   []int // each refers to a message, and to no other
	messages  map[int]line
	suspended map[string]waiting // by the id of the call, which is its key too
	edited    int                // how often the ledger has made effects, each time a version of the state
	last      int                // the highest number that a message has had
	given     []given            // which records have given the numbers
}

// given says that a record has given the numbers up to the last.
type given struct {
	run  string // the id of its message
	time int64  // in Unix milliseconds
	last int
}

// waiting is what is known of a suspended call.
type waiting struct {
	run      string // that has suspended it
	approved bool
	again    bool // it was approved, and its run has ended
}

// line is a message of a text.
type line struct {
	call   string // its id
	result bool   // of the call
	raw    string
}

// alienField is a field that strict processes do not know.
const alienField = "alien"

func (t text) clone() text {
	return text{
		maps.Clone(t.lists), maps.Clone(t.values), slices.Clone(t.entries), slices.Clone(t.results), maps.Clone(t.messages),
		maps.Clone(t.suspended), t.edited, t.last, t.given,
	}
}

func (t text) isAlien() bool { return t.values[alienField] != "" }

func (t text) encode() string {
	fields := maps.Clone(t.values)
	if fields == nil {
		fields = map[string]string{}
	}
	for name, list := range t.lists {
		fields[name] = "[" + strings.Join(list, ",") + "]"
	}
	conversation, messages, suspended := map[string]string{}, map[string]string{}, map[string]string{}
	if t.edited > 0 {
		conversation["version"] = strconv.Itoa(t.edited)
	}
	if t.entries != nil {
		conversation["entries"] = strings.ReplaceAll(fmt.Sprint(t.entries), " ", ",")
	}
	if len(t.given) > 0 {
		conversation["numbers"] = encodeGiven(t.given)
	}
	if t.results != nil {
		conversation["results"] = string(inferences(t.results))
	}
	for n, m := range t.messages {
		messages[strconv.Itoa(n)] = m.raw
	}
	for id, w := range t.suspended {
		suspended[id] = suspension(id, w)
	}
	var parts []string
	for _, part := range []struct {
		name   string
		fields map[string]string
	}{{"conversation", conversation}, {"key", fields}, {"message", messages}, {"suspended", suspended}} {
		if len(part.fields) > 0 {
			parts = append(parts, `"`+part.name+`":`+encodeFields(part.fields))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func encodeFields(fields map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list = append(list, `"`+name+`":`+fields[name])
	}
	return "{" + strings.Join(list, ",") + "}"
}

// encodeGiven returns a group for each run.
func encodeGiven(list []given) string {
	var groups []string
	for i, g := range list {
		if i > 0 && list[i-1].run == g.run {
			at := len(groups) - 1
			groups[at] = fmt.Sprintf("%s,%d,%d]", strings.TrimSuffix(groups[at], "]"), g.time-list[i-1].time, g.last+1)
		} else {
			groups = append(groups, fmt.Sprintf("[%q,%d,%d]", g.run, g.time, g.last+1))
		}
	}
	return "[" + strings.Join(groups, ",") + "]"
}

// give notes that a record has given the numbers that are new.
func (t *text) give(run string, time int64) {
	if n := len(t.given); t.last > 0 && (n == 0 || t.given[n-1].last < t.last) {
		t.given = append(slices.Clip(t.given), given{run, time, t.last})
	}
}

func suspension(id string, w waiting) string {
	s := `{"run_id":"` + w.run + `"`
	if w.again {
		s += `,"reason":"The call was approved before, and may have been made. "`
	}
	if at := expiryOf(id); at > 0 {
		s += `,"until":"` + time.UnixMilli(at).UTC().Format(time.RFC3339Nano) + `"`
	}
	if w.again {
		s += `,"again":true`
	}
	if w.approved {
		s += `,"approval":{"by":"ann"}`
	}
	return s + "}"
}

// expiryOf returns when a call expires, or 0 for some.
func expiryOf(id string) (ms int64) {
	for _, c := range id {
		ms = (ms*31 + int64(c)) % 1009
	}
	return ms % 3 * (ms + 1)
}

// expires returns when the first call expires about which nobody has decided, or 0.
func (t text) expires() (first int64) {
	for id, w := range t.suspended {
		if at := expiryOf(id); at > 0 && !w.approved && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// open returns the calls without a result, each by its place in the entries.
func (t text) open() []int {
	answered := map[string]bool{}
	for _, m := range t.messages {
		if m.result {
			answered[m.call] = true
		}
	}
	var places []int
	for i, n := range t.entries {
		if m := t.messages[n]; m.call != "" && !m.result && !answered[m.call] {
			places = append(places, i)
		}
	}
	return places
}

// undecided returns the text in which the calls that are approved wait again. It
// reports whether that is a change.
func (t text) undecided() (text, bool) {
	t, changed := t.clone(), false
	for id, w := range t.suspended {
		if w.approved {
			t.suspended[id], changed = waiting{run: w.run, again: true}, true
		}
	}
	if changed {
		t.edited++
	}
	return t, changed
}

// answered returns the text in which the calls that a run has made since base
// are answered, except for those that are suspended, which wait again if they were
// approved. If cancelled is not empty, those that the run with this id has
// suspended, or that are approved, are answered too. It reports whether that is a
// change.
func (t text) answered(base text, cancelled string) (text, bool) {
	t = t.clone()
	changed, texts := false, map[string]string{}
	for id, w := range t.suspended {
		switch {
		case cancelled == "" && w.approved:
			t.suspended[id], changed = waiting{run: w.run, again: true}, true
		case cancelled != "" && (w.run == cancelled || w.approved):
			delete(t.suspended, id)
			if texts[id], changed = noResult, true; !w.approved {
				texts[id] = "The call was not made: the run was ended."
			}
		}
	}
	for _, i := range slices.Backward(t.open()) {
		n := t.entries[i]
		id := t.messages[n].call
		if _, waits := t.suspended[id]; !waits && (!slices.Contains(base.entries, n) || texts[id] != "") {
			t.entries = slices.Insert(t.entries, i+1, -n)
			changed = true
		}
	}
	end := len(t.entries)
	for end > 0 && t.entries[end-1] < 0 {
		end--
	}
	number := func(entries []int) { // the answers are numbered in their order
		for i, n := range entries {
			if n < 0 {
				id := t.messages[-n].call
				entries[i] = t.say(line{id, true, resultOf(id, cmp.Or(texts[id], noResult), true)})
			}
		}
	}
	number(t.entries[end:]) // those at the end before the others
	number(t.entries[:end])
	if changed {
		t.edited++
	}
	return t, changed
}

// mayForget reports whether the first n entries have no calls without those of
// their results that are there.
func (t text) mayForget(n int) bool {
	if open := t.open(); len(open) > 0 && open[0] < n {
		return false
	}
	calls := map[string]bool{}
	for _, at := range t.entries[:n] {
		calls[t.messages[at].call] = true
	}
	return !slices.ContainsFunc(t.entries[n:], func(at int) bool { return t.messages[at].result && calls[t.messages[at].call] })
}

// say adds a message, and returns its number.
func (t *text) say(m line) int {
	t.last++
	t.messages[t.last] = m
	return t.last
}

// noResult is what package transcript says of a call that was not completed.
const noResult = "There is no result: the call may have been made."

const userSays = `{"type":"text","role":"user","content":"hello"}`

func callOf(id string) string {
	return `{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"` + id + `","name":"f","key":"` + id + `"}],"stop_reason":"tool"}`
}

func resultOf(id, content string, failed bool) string {
	m := `{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"` + id + `","name":"f","key":"` + id + `"},"content":"` + content +
		`","stop_reason":"tool"`
	if failed {
		m += `,"is_error":true`
	}
	return m + "}"
}

// The edits of a text, beside the kinds of effects on its lists and values.
const (
	editCall    state.EffectKind = "call"    // the user says something, and the model calls a tool
	editResult  state.EffectKind = "result"  // the call at a place has a result, suspended or not
	editSuspend state.EffectKind = "suspend" // the call at a place is suspended by a run, and approved if n is 1
	editInfer   state.EffectKind = "infer"   // a result is added that refers to the message n
	editForget  state.EffectKind = "forget"  // the first n messages leave the conversation
	editPop     state.EffectKind = "pop"     // the result n is removed
	editWindow  state.EffectKind = "window"  // n results stay, and the messages to which something refers
)

// inferences returns results that refer to messages.
func inferences(numbers []int) state.JSON {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprintf(`{"id":"r","agent":"","history":[[%d,%d]],"created_at":"2026-01-02T03:04:05Z"}`, n, n+1)
	}
	return state.JSON("[" + strings.Join(texts, ",") + "]")
}

// edit is a change of a text.
type edit struct {
	do    state.EffectKind
	field string // for calls, the id of the call
	n     int
	more  []string
}

// effects returns the effects that make the edit in a text.
func (e edit) effects(t text) []state.Effect {
	set := func(part, field, value string) state.Effect {
		return state.Effect{Part: part, Field: field, Kind: state.EffectSet, Value: state.JSON(value)}
	}
	entries := state.Effect{Part: document.PartConversation, Field: "entries"}
	results := state.Effect{Part: document.PartConversation, Field: "results"}
	switch n := t.last + 1; e.do {
	case editInfer:
		if results.Kind, results.Value = state.EffectAppend, inferences([]int{e.n}); t.results == nil {
			results.Kind = state.EffectSet
		}
		return []state.Effect{results}
	case editForget:
		entries.Kind, entries.N = state.EffectDropFirst, e.n
		return []state.Effect{entries}
	case editPop:
		results.Kind, results.N = state.EffectRemoveAt, e.n
		return []state.Effect{results}
	case editWindow: // the document makes them
		return nil
	case editCall:
		numbers := state.JSON(fmt.Sprintf("[%d,%d]", n, n+1))
		if entries.Kind, entries.Value = state.EffectAppend, numbers; t.entries == nil {
			entries.Kind = state.EffectSet
		}
		return []state.Effect{
			set(document.PartMessage, strconv.Itoa(n), userSays), set(document.PartMessage, strconv.Itoa(n+1), callOf(e.field)), entries,
		}
	case editResult:
		entries.Kind, entries.N, entries.Value = state.EffectInsert, e.n+1, state.JSON(fmt.Sprintf("[%d]", n))
		effects := []state.Effect{set(document.PartMessage, strconv.Itoa(n), resultOf(e.field, "done", false)), entries}
		if _, waits := t.suspended[e.field]; waits {
			effects = append(effects, state.Effect{Part: document.PartSuspended, Field: e.field, Kind: state.EffectDelete})
		}
		return effects
	case editSuspend:
		return []state.Effect{set(document.PartSuspended, e.field, suspension(e.field, waiting{run: e.more[0], approved: e.n > 0}))}
	}
	x := state.Effect{Part: document.PartKey, Field: e.field, Kind: e.do, N: e.n}
	switch {
	case e.do == state.EffectSet && e.n == 0:
		x.Value = state.JSON(e.more[0])
	case e.do == state.EffectSet || e.do == state.EffectAppend || e.do == state.EffectInsert:
		x.Value = state.JSON("[" + strings.Join(e.more, ",") + "]")
	}
	if e.do == state.EffectSet {
		x.N = 0
	}
	return []state.Effect{x}
}

// effectsOf returns the effects of edits of a text.
func effectsOf(t text, edits []edit) []state.Effect {
	var effects []state.Effect
	for _, e := range edits {
		effects = append(effects, e.effects(t)...)
		t = e.on(t)
	}
	return effects
}

// on returns the text after the edit. A set whose n is 1 sets a list.
func (e edit) on(t text) text {
	t = t.clone()
	if t.lists == nil {
		t.lists, t.values = map[string][]string{}, map[string]string{}
		t.messages, t.suspended = map[int]line{}, map[string]waiting{}
	}
	list := slices.Clone(t.lists[e.field])
	switch e.do {
	case editCall:
		t.entries = append(t.entries, t.say(line{raw: userSays}))
		t.entries = append(t.entries, t.say(line{call: e.field, raw: callOf(e.field)}))
		return t
	case editResult:
		n := t.say(line{e.field, true, resultOf(e.field, "done", false)})
		t.entries = slices.Insert(t.entries, e.n+1, n)
		delete(t.suspended, e.field)
		return t
	case editSuspend:
		t.suspended[e.field] = waiting{run: e.more[0], approved: e.n > 0}
		return t
	case editInfer:
		t.results = append(t.results, e.n)
		return t
	case editForget:
		t.entries = t.entries[e.n:]
		return t
	case editPop:
		t.results = slices.Delete(t.results, e.n, e.n+1)
		return t
	case editWindow:
		if len(t.results) > e.n {
			t.results = t.results[len(t.results)-e.n:]
			t.edited++
		}
		maps.DeleteFunc(t.messages, func(n int, _ line) bool {
			return !slices.Contains(t.entries, n) && !slices.Contains(t.results, n)
		})
		return t
	case state.EffectSet:
		if e.n == 0 {
			t.values[e.field] = e.more[0]
			return t
		}
		list = slices.Clone(e.more)
	case state.EffectDelete:
		delete(t.values, e.field)
		delete(t.lists, e.field)
		return t
	case state.EffectAppend:
		list = append(list, e.more...)
	case state.EffectInsert:
		list = slices.Insert(list, e.n, e.more...)
	case state.EffectDropFirst:
		list = list[e.n:]
	case state.EffectTruncate:
		list = list[:e.n]
	case state.EffectRemoveAt:
		list = slices.Delete(list, e.n, e.n+1)
	}
	t.lists[e.field] = list
	return t
}

// edits returns random edits that fit a text, by an actor with a run, or with "".
func (a *actor) edits(t text, run string) []edit {
	var edits []edit
	for range 1 + a.x.rng.IntN(2) {
		e, ok := a.callEdit(t, run)
		if !ok {
			e = a.x.edit(t)
		}
		t = e.on(t)
		edits = append(edits, e)
	}
	return edits
}

// callEdit returns a random edit of the conversation, or of the field that a
// strict process does not know.
func (a *actor) callEdit(t text, run string) (edit, bool) {
	x := a.x
	if !a.process.strict && x.chance(x.rates.alien) {
		if t.isAlien() {
			return edit{do: state.EffectDelete, field: alienField}, true
		}
		return edit{do: state.EffectSet, field: alienField, more: []string{"1"}}, true
	}
	if !x.chance(x.rates.calls) {
		return edit{}, false
	}
	if open := t.open(); len(open) > 0 && x.chance(0.6) {
		i := open[x.rng.IntN(len(open))]
		id := t.messages[t.entries[i]].call
		switch w, waits := t.suspended[id]; {
		case run != "" && !waits && x.chance(0.6):
			return edit{do: editSuspend, field: id, more: []string{run}}, true
		case run != "" && waits && !w.approved && x.chance(0.6):
			return edit{do: editSuspend, field: id, n: 1, more: []string{w.run}}, true
		}
		return edit{do: editResult, field: id, n: i}, true
	}
	if n := len(t.entries); n > 0 && x.chance(0.6) {
		i := x.rng.IntN(n)
		switch k := x.rng.IntN(4); {
		case k < 2:
			return edit{do: editInfer, n: t.entries[i]}, true
		case k == 2 && t.mayForget(i+1):
			return edit{do: editForget, n: i + 1}, true
		case len(t.results) > 0:
			return edit{do: editPop, n: x.rng.IntN(len(t.results))}, true
		}
	}
	x.values++
	return edit{do: editCall, field: fmt.Sprint("c", x.values)}, true
}

func (x *explorer) edit(t text) edit {
	x.values++
	value := fmt.Sprint(x.values)
	if x.chance(x.rates.big) {
		value = `"` + value + strings.Repeat("x", 1000+x.rng.IntN(4000)) + `"`
	}
	field := []string{"log", "tasks"}[x.rng.IntN(2)]
	list, present := t.lists[field]
	n := 0
	if len(list) > 0 {
		n = x.rng.IntN(len(list))
	}
	switch k := x.rng.IntN(12); {
	case k < 2:
		return edit{do: state.EffectSet, field: "count", more: []string{value}}
	case k == 2 && t.values["count"] != "":
		return edit{do: state.EffectDelete, field: "count"}
	case !present:
		return edit{do: state.EffectSet, field: field, n: 1, more: []string{value}}
	case k == 3:
		return edit{do: state.EffectDelete, field: field}
	case k == 4 && len(list) > 0:
		return edit{do: state.EffectDropFirst, field: field, n: n + 1}
	case k == 5:
		return edit{do: state.EffectTruncate, field: field, n: n}
	case k == 6 && len(list) > 0:
		return edit{do: state.EffectRemoveAt, field: field, n: n}
	case k == 7:
		return edit{do: state.EffectInsert, field: field, n: n, more: []string{value}}
	}
	return edit{do: state.EffectAppend, field: field, more: []string{value}}
}

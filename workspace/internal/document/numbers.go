package document

import (
	"crypto/rand"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// A message of the conversation has a number, under which PartMessage stores it.
// The number is given when the message is first stored, rises by one, and is
// never given again. It is not the place of the message: a late result stands
// behind its call and has a higher number than what follows. Messages that only
// results hold have negative numbers.
//
// No effect of a record says when a message was stored, and by which run: the
// record does. ApplyRecord notes it in the field fieldNumbers, which a snapshot
// keeps when the record is gone. The field has a group for each run,
//
//	["id of its message", time, end, duration, end, …]
//
// with a time in Unix milliseconds, the milliseconds from one record to the next,
// and for each record the number after those that it has given. The end of the
// last group is the number that the next message gets, so undoing a run leaves
// the field as it is.

// Origin says when a message was stored, and by which run.
type Origin struct {
	Time time.Time // of the record, in milliseconds
	Run  string    // the id of the message that the run has handled, or "" if no run has stored it
}

// numbering is the end of fieldNumbers.
type numbering struct {
	next int    // the number of the next message
	run  string // of the last group
	time int64
}

// numbering returns the end of the field.
func (d *Document) numbering() (numbering, error) {
	if x := d.newest.Load(); x != nil {
		return *x, nil
	}
	x := numbering{next: 1}
	groups, err := d.numberGroups()
	if err == nil && groups.Len() > 0 {
		at := groups.Len() - 1
		err = eachRecord(persist.At[state.JSON](groups, at), at, func(end int, by Origin) {
			x = numbering{end, by.Run, by.Time.UnixMilli()}
		})
	}
	if err != nil {
		return x, err
	}
	d.newest.Store(&x)
	return x, nil
}

// numberGroups returns the groups, as a list of state.JSON.
func (d *Document) numberGroups() (*persist.List, error) {
	v := d.get(PartConversation, fieldNumbers)
	if v == nil {
		v = &fieldValue{text: "[]"}
	}
	groups, ok := v.elements()
	if !ok {
		return nil, corrupt("$.conversation.numbers", "not a list")
	}
	return groups, nil
}

// eachRecord calls fn for each record of a group, with the number after those
// that it has given.
func eachRecord(group state.JSON, at int, fn func(end int, by Origin)) error {
	elements, err := jsontext.Elements([]byte(group))
	fit := err == nil && len(elements) >= 3 && len(elements)%2 == 1 && jsontext.Kind(elements[0]) == "string"
	var ms int64
	for i := 1; fit && i < len(elements); i += 2 {
		more, err := strconv.ParseInt(string(elements[i]), 10, 64)
		end, ok := messageNumber(string(elements[i+1]))
		if fit = err == nil && ok; fit {
			ms += more
			fn(end, Origin{time.UnixMilli(ms).UTC(), jsontext.Unquote(elements[0])})
		}
	}
	if !fit {
		return corrupt(jsontext.Index("$.conversation.numbers", at), "not the numbers of a run")
	}
	return nil
}

// ApplyRecord is Apply for the effects of a record, which was stored at a time by
// a run. It notes the numbers that the record gives. If it returns an error, the
// document is not to be used any more.
func (d *Document) ApplyRecord(effects []state.Effect, by Origin) error {
	if err := d.Apply(effects); err != nil {
		return err
	}
	return d.noteRecord(effects, by)
}

// noteRecord notes the numbers that a record gives, whose effects were applied.
func (d *Document) noteRecord(effects []state.Effect, by Origin) error {
	x, err := d.numbering()
	if err != nil {
		return err
	}
	end := x.next
	for i := range effects {
		if e := &effects[i]; e.Part == PartMessage && e.Kind == state.EffectSet {
			if n, ok := messageNumber(e.Field); ok {
				end = max(end, n+1)
			}
		}
	}
	if end == x.next { // what it sets had numbers before, as after undoing a run
		return nil
	}
	groups, err := d.numberGroups()
	if err != nil {
		return err
	}
	ms, last := by.Time.UnixMilli(), groups.Len()-1
	var group []byte
	if last >= 0 && x.run == by.Run {
		group = []byte(persist.At[state.JSON](groups, last))
		group = strconv.AppendInt(append(group[:len(group)-1], ','), ms-x.time, 10)
		groups = groups.Take(last, 0)
	} else {
		group = jsontext.AppendQuote([]byte{'['}, by.Run)
		group = strconv.AppendInt(append(group, ','), ms, 10)
	}
	group = append(strconv.AppendInt(append(group, ','), int64(end), 10), ']')
	d.put(PartConversation, fieldNumbers, &fieldValue{list: groups.Append([]state.JSON{state.JSON(group)}, 0)})
	d.newest.Store(&numbering{end, by.Run, ms})
	return nil
}

// NextNumber returns the number that the next message of the conversation gets.
func (d *Document) NextNumber() (int, error) {
	x, err := d.numbering()
	return x.next, err
}

// Numbers returns the numbers of the messages of the conversation.
func (d *Document) Numbers() ([]int, error) {
	l, err := d.entryList()
	if err != nil {
		return nil, err
	}
	return l.Slice(0, l.Len()).([]int), nil
}

// Origins knows when each message of a conversation was stored, and by which
// run. Those that are not known have no time.
type Origins struct {
	ends []int // after the numbers of each record, which rise
	by   []Origin
}

// Origins returns the origins of the messages of the conversation.
func (d *Document) Origins() (*Origins, error) {
	groups, err := d.numberGroups()
	if err != nil {
		return nil, err
	}
	o := &Origins{}
	for i := range groups.Len() {
		err := eachRecord(persist.At[state.JSON](groups, i), i, func(end int, by Origin) {
			o.ends, o.by = append(o.ends, end), append(o.by, by)
		})
		if err != nil {
			return nil, err
		}
	}
	if !slices.IsSorted(o.ends) {
		return nil, corrupt("$.conversation.numbers", "the numbers do not rise")
	}
	return o, nil
}

// Of returns the origin of a message.
func (o *Origins) Of(n int) Origin {
	i := sort.SearchInts(o.ends, n+1)
	if i == len(o.by) {
		return Origin{}
	}
	return o.by[i]
}

// groupEnd returns the number after those that a group has given, or one that is
// too high if it is not one.
func groupEnd(group state.JSON) int {
	text := strings.TrimSuffix(string(group), "]")
	if n, ok := messageNumber(text[strings.LastIndexByte(text, ',')+1:]); ok {
		return n
	}
	return math.MaxInt
}

// minGroups is the number of groups below which none is dropped.
const minGroups = 32

// shortenNumbers returns the effect that drops the groups of messages that have
// left the conversation, if they are half of all.
func (d *Document) shortenNumbers() ([]state.Effect, error) {
	groups, err := d.numberGroups()
	if err != nil || groups.Len() < minGroups {
		return nil, err
	}
	entries, err := d.entryList()
	if err != nil {
		return nil, err
	}
	first := math.MaxInt
	unneeded := func() int {
		return sort.Search(groups.Len()-1, func(i int) bool { // the last one has the next number
			return groupEnd(persist.At[state.JSON](groups, i)) > first
		})
	}
	for i := range entries.Len() { // of which the first mostly has the lowest number
		first = min(first, persist.At[int](entries, i))
		if i == 0 && unneeded() < groups.Len()/2 {
			return nil, nil
		}
	}
	n := unneeded()
	if n < groups.Len()/2 {
		return nil, nil
	}
	return []state.Effect{dropFirstEffect(fieldNumbers, n)}, nil
}

// numbersOf returns the numbers of an edited list of messages. The new ones at
// the end of the list get theirs first, so that the number of what a model is
// about to say does not depend on late results that arrive meanwhile.
func (in *interner) numbersOf(numbers []int, before, after []state.JSON) []int {
	list := numbersLeft(numbers, before, after)
	tail := len(list) - newAtEnd(list)
	for i := tail; i < len(list); i++ {
		list[i] = in.addNext(after[i])
	}
	for i := range tail {
		if list[i] == 0 {
			list[i] = in.addNext(after[i])
		}
	}
	return list
}

// numbersLeft returns the numbers that the messages of an edited list have kept,
// and 0 for those that are new.
func numbersLeft(numbers []int, before, after []state.JSON) []int {
	list := make([]int, len(after))
	low := 0
	for low < min(len(before), len(after)) && before[low] == after[low] {
		list[low] = numbers[low]
		low++
	}
	end, was := len(after), len(before)
	for end > low && was > low && before[was-1] == after[end-1] {
		end, was = end-1, was-1
		list[end] = numbers[was]
	}
	left := map[state.JSON][]int{} // of the texts between
	for i := low; i < was; i++ {
		left[before[i]] = append(left[before[i]], numbers[i])
	}
	for i := end - 1; i >= low; i-- { // from the end, since lists are shortened at the beginning
		if same := left[after[i]]; len(same) > 0 {
			list[i], left[after[i]] = same[len(same)-1], same[:len(same)-1]
		}
	}
	return list
}

// newAtEnd returns how many of the last messages are new.
func newAtEnd(list []int) int {
	n := 0
	for n < len(list) && list[len(list)-1-n] == 0 {
		n++
	}
	return n
}

// NextAfter returns the number of the message that is added to the end of the
// conversation next, if the document, which holds the content of from, is to hold
// that of to. It adds one to a branch, since what the others keep depends on it
// and on the handler of the conversation.
func (d *Document) NextAfter(from, to *state.State) (int, error) {
	branch := to.Fork()
	said := state.AssistantText(rand.Text()) // the text of no other message
	if err := state.Messages.Set(branch, []state.Message{said}); err != nil {
		return 0, err
	}
	_, s, err := d.save(from, branch.Snapshot(), nil)
	if err != nil {
		return 0, err
	}
	return s.talk.lastNumber(), nil
}

package document

import (
	"crypto/rand"
	"slices"
	"sort"
	"strconv"
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

// runNumbers are the numbers that the records of a run have given.
type runNumbers struct {
	run     string
	records []recordNumbers
}

// recordNumbers are those that a record has given.
type recordNumbers struct {
	end  int // the number after them
	time int64
}

// readRunNumbers reads a group of fieldNumbers.
func readRunNumbers(data []byte) (r runNumbers, ok bool) {
	elements, err := jsontext.Elements(data)
	if err != nil || len(elements) < 3 || len(elements)%2 == 0 || jsontext.Kind(elements[0]) != "string" {
		return r, false
	}
	r.run = jsontext.Unquote(elements[0])
	var last recordNumbers
	for i := 1; i < len(elements); i += 2 {
		ms, err := strconv.ParseInt(string(elements[i]), 10, 64)
		end, ok := messageNumber(string(elements[i+1]))
		if err != nil || !ok || end < last.end {
			return r, false
		}
		last = recordNumbers{end, last.time + ms}
		r.records = append(r.records, last)
	}
	return r, true
}

// json returns the group of fieldNumbers.
func (r runNumbers) json() state.JSON {
	text := jsontext.AppendQuote([]byte{'['}, r.run)
	var last recordNumbers
	for _, next := range r.records {
		text = strconv.AppendInt(append(text, ','), next.time-last.time, 10)
		text = strconv.AppendInt(append(text, ','), int64(next.end), 10)
		last = next
	}
	return state.JSON(append(text, ']'))
}

// end returns the number after those that the run has given.
func (r runNumbers) end() int { return r.records[len(r.records)-1].end }

// numberGroups returns the groups of fieldNumbers, as a list of runNumbers.
func (d *Document) numberGroups() *persist.List { return list[runNumbers](d.known[knownNumbers]) }

// ApplyRecord is Apply for the effects of a record, which was stored at a time by
// a run. It notes the numbers that the record gives. If it returns an error, the
// document is not to be used any more.
func (d *Document) ApplyRecord(effects []state.Effect, by Origin) error {
	err := d.Apply(effects)
	if err == nil {
		d.noteRecord(effects, by)
	}
	return err
}

// noteRecord notes the numbers that a record gives, whose effects were applied.
func (d *Document) noteRecord(effects []state.Effect, by Origin) {
	next := d.NextNumber()
	end := next
	for i := range effects {
		if e := &effects[i]; e.Part == PartMessage && e.Kind == state.EffectSet {
			if n, _ := messageField(e.Field); n >= end {
				end = n + 1
			}
		}
	}
	if end == next { // what it sets had numbers before, as after undoing a run
		return
	}
	groups, group := d.numberGroups(), runNumbers{run: by.Run}
	if last := groups.Len() - 1; last >= 0 {
		if newest := persist.At[runNumbers](groups, last); newest.run == by.Run {
			group.records = slices.Clip(newest.records)
			groups = groups.Take(last, 0)
		}
	}
	group.records = append(group.records, recordNumbers{end, by.Time.UnixMilli()})
	d.known[knownNumbers] = &fieldValue{list: groups.Append([]runNumbers{group}, 0)}
}

// NextNumber returns the number that the next message of the conversation gets.
func (d *Document) NextNumber() int {
	groups := d.numberGroups()
	if groups.Len() == 0 {
		return 1
	}
	return persist.At[runNumbers](groups, groups.Len()-1).end()
}

// Numbers returns the numbers of the messages of the conversation.
func (d *Document) Numbers() []int { return d.entries() }

// EndsWith reports whether the conversation ends with a message that the run has
// stored which has handled the message with an id, and nothing was stored since.
func (d *Document) EndsWith(messageID string) bool {
	groups, entries := d.numberGroups(), d.entryList()
	last := groups.Len() - 1
	if last < 0 || entries.Len() == 0 || persist.At[runNumbers](groups, last).run != messageID {
		return false
	}
	return last == 0 || persist.At[int](entries, entries.Len()-1) >= persist.At[runNumbers](groups, last-1).end()
}

// Origins knows when each message of a conversation was stored, and by which
// run. Those that are not known have no time.
type Origins struct {
	ends []int // after the numbers of each record, which rise
	by   []Origin
}

// Origins returns the origins of the messages of the conversation.
func (d *Document) Origins() (*Origins, error) {
	groups, o := d.numberGroups(), &Origins{}
	for i := range groups.Len() {
		group := persist.At[runNumbers](groups, i)
		for _, record := range group.records {
			o.ends, o.by = append(o.ends, record.end), append(o.by, Origin{time.UnixMilli(record.time).UTC(), group.run})
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

// minGroups is the number of groups below which none is dropped.
const minGroups = 32

// shortenNumbers returns the effect that drops the first half of the groups, if
// all messages of those have left the conversation.
func (d *Document) shortenNumbers() []state.Effect {
	groups, entries := d.numberGroups(), d.entryList()
	if groups.Len() < minGroups {
		return nil
	}
	half := groups.Len() / 2
	end := persist.At[runNumbers](groups, half-1).end()
	for i := range entries.Len() { // of which the first mostly has the lowest number
		if persist.At[int](entries, i) < end {
			return nil
		}
	}
	return []state.Effect{dropFirstEffect(fieldNumbers, half)}
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
	return s.conversation.lastNumber(), nil
}

package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/workspace/work"
)

// messageIndex finds the messages of a document by their texts.
type messageIndex struct {
	numbers persist.Map[int] // a number of each text
	first   int              // the lowest number that is or was used, or 0 if none is negative
	last    int              // the highest one, or 0 if none is positive
}

// index returns the index of PartMessage. The caller must not change it.
func (d *Document) index() *messageIndex {
	x := d.messages.Load()
	if x == nil {
		x = &messageIndex{}
		owner := persist.NewOwner()
		for _, m := range d.numbered() {
			x.add(owner, m.text, m.number)
		}
		d.messages.Store(x)
	}
	return x
}

// numberedMessage is the text of a message with its number.
type numberedMessage struct {
	number int
	text   state.JSON
}

// numbered returns the messages in the order of their numbers.
func (d *Document) numbered() []numberedMessage {
	list := make([]numberedMessage, 0, d.count(PartMessage))
	for field, v := range d.fields(PartMessage) {
		n, _ := messageField(field)
		list = append(list, numberedMessage{n, v.json()})
	}
	slices.SortFunc(list, func(a, b numberedMessage) int { return cmp.Compare(a.number, b.number) })
	return list
}

func (x *messageIndex) clone() *messageIndex {
	c := &messageIndex{first: x.first, last: x.last}
	x.numbers.Share(&c.numbers)
	return c
}

// number returns a number of a text.
func (x *messageIndex) number(text state.JSON) (int, bool) {
	if n := x.numbers.Get(string(text)); n != nil {
		return *n, true
	}
	return 0, false
}

// add notes a message. The lowest number of a text stays.
func (x *messageIndex) add(owner uint64, text state.JSON, n int) {
	if known, ok := x.number(text); !ok || n < known {
		x.numbers.Set(owner, string(text), &n)
	}
	x.first, x.last = min(x.first, n), max(x.last, n)
}

// noteMessage notes that a field of PartMessage was changed.
func (d *Document) noteMessage(field string, old, v *fieldValue) {
	x := d.messages.Load()
	if x == nil {
		return
	}
	n, _ := messageField(field)
	switch {
	case old != nil && v != nil:
		d.messages.Store(nil)
	case v != nil:
		x.add(d.owner.Load(), v.json(), n)
	case old != nil:
		if known, _ := x.number(old.json()); known == n { // others with the text are not found any more
			x.numbers.Delete(d.owner.Load(), string(old.json()))
		}
	}
}

// message returns the text of a message, or "".
func (d *Document) message(n int) state.JSON {
	if v := d.get(PartMessage, strconv.Itoa(n)); v != nil {
		return v.json()
	}
	return ""
}

// decodeMessages returns the messages with these numbers.
func (d *Document) decodeMessages(numbers []int) ([]state.Message, error) {
	msgs := make([]state.Message, len(numbers))
	for i, n := range numbers {
		text := d.message(n)
		if text == "" {
			return nil, fmt.Errorf("%w: content: no message %d", work.ErrCorrupt, n)
		}
		m, err := state.DecodeMessage([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%w: content: message %d: %w", work.ErrCorrupt, n, err)
		}
		msgs[i] = m
	}
	return msgs, nil
}

// decodeRanges returns the messages with the numbers in ranges.
func (d *Document) decodeRanges(ranges []form.Run) ([]state.Message, error) {
	var numbers []int
	for _, r := range ranges {
		for n := r.From; n < r.To; n++ {
			numbers = append(numbers, n)
		}
	}
	return d.decodeMessages(numbers)
}

// maxNumber is the highest number of a message: an int on every platform.
const maxNumber = math.MaxInt32

// messageField reads the number of a message, which is negative if only results
// hold the message.
func messageField(text string) (int, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	n, ok := messageNumber(digits)
	if negative {
		n = -n
	}
	return n, ok
}

// messageNumber reads the number of a message of the conversation.
func messageNumber(text string) (int, bool) {
	if text == "" || text[0] < '1' || text[0] > '9' { // other texts of the number
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil
}

// interner finds the numbers of messages that a document has already, and gives
// new numbers to others.
type interner struct {
	document *Document
	known    *messageIndex
	next     int                // the number of the next message of the conversation
	other    int                // the number of the next message that only results hold
	added    []state.JSON       // the texts of the new messages of the conversation, in the order of their numbers
	others   []state.JSON       // those of the new messages that only results hold
	numbers  map[state.JSON]int // the first number of each of these texts, once they are not few
	effects  []state.Effect     // add the new messages to the document
}

// fewMessages is the number of new messages that are looked through for a text.
const fewMessages = 8

func newInterner(d *Document) *interner {
	x := d.index()
	return &interner{document: d, known: x, next: max(d.NextNumber(), x.last+1), other: x.first - 1}
}

// newMessages returns the effects that add the new messages. Numbers are never
// used again, so a document can run out of them.
func (in *interner) newMessages() ([]state.Effect, error) {
	if last := max(in.next-1, -in.other-1); len(in.effects) > 0 && last > maxNumber {
		return nil, &state.LimitError{Name: "message numbers", Limit: maxNumber, Got: last}
	}
	return in.effects, nil
}

func (in *interner) text(n int) state.JSON {
	if i := n - (in.next - len(in.added)); i >= 0 && i < len(in.added) {
		return in.added[i]
	}
	if i := in.other + len(in.others) - n; i >= 0 && i < len(in.others) {
		return in.others[i]
	}
	return in.document.message(n)
}

// number returns the first number that a text was given.
func (in *interner) number(text state.JSON) (n int, ok bool) {
	if in.numbers != nil {
		n, ok = in.numbers[text]
		return n, ok
	}
	for i := range in.effects {
		if e := &in.effects[i]; e.Value == text {
			n, _ = messageField(e.Field)
			return n, true
		}
	}
	return 0, false
}

// add stores a message under a new number.
func (in *interner) add(n int, text state.JSON) {
	if in.numbers == nil && len(in.effects) == fewMessages {
		in.numbers = map[state.JSON]int{}
		for _, e := range slices.Backward(in.effects) {
			in.numbers[e.Value], _ = messageField(e.Field)
		}
	}
	if _, ok := in.numbers[text]; in.numbers != nil && !ok {
		in.numbers[text] = n
	}
	in.effects = append(in.effects, setEffect(PartMessage, strconv.Itoa(n), text))
}

// addNext gives a message of the conversation the next number, even if an equal
// one is there.
func (in *interner) addNext(text state.JSON) int {
	n := in.next
	in.next, in.added = n+1, append(in.added, text)
	in.add(n, text)
	return n
}

// addOther gives a message that only results hold a number.
func (in *interner) addOther(text state.JSON) int {
	n := in.other
	in.other, in.others = n-1, append(in.others, text)
	in.add(n, text)
	return n
}

// find returns a number of a message: the number after previous if it has that
// one, which keeps ranges together, else its lowest, else a new one.
func (in *interner) find(m state.Message, previous int) int {
	text := m.Raw()
	if in.text(previous+1) == text {
		return previous + 1
	}
	if n, ok := in.known.number(text); ok {
		return n
	}
	if n, ok := in.number(text); ok {
		return n
	}
	return in.addOther(text)
}

// findAll returns the numbers of messages.
func (in *interner) findAll(msgs []state.Message) []int {
	numbers := make([]int, len(msgs))
	previous := 0
	for i, m := range msgs {
		previous = in.find(m, previous)
		numbers[i] = previous
	}
	return numbers
}

// addAll gives messages of the conversation the next numbers.
func (in *interner) addAll(msgs []state.Message) []int {
	numbers := make([]int, len(msgs))
	for i, m := range msgs {
		numbers[i] = in.addNext(m.Raw())
	}
	return numbers
}

// rangesOf returns numbers as ranges of consecutive ones.
func rangesOf(numbers []int) []form.Run {
	var ranges []form.Run
	for _, n := range numbers {
		ranges = appendNumber(ranges, n)
	}
	return ranges
}

// appendNumber adds a number to ranges.
func appendNumber(ranges []form.Run, n int) []form.Run {
	if last := len(ranges) - 1; last >= 0 && ranges[last].To == n {
		ranges[last].To++
		return ranges
	}
	return append(ranges, form.Run{From: n, To: n + 1})
}

// numberArray returns an array of numbers.
func numberArray(numbers []int) state.JSON {
	b := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return state.JSON(append(b, ']'))
}

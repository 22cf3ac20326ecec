package document

import (
	"fmt"
	"math"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
)

// messageTable is the index of PartMessage.
type messageTable struct {
	texts map[int]state.JSON
	first map[state.JSON]int // the lowest number of each text
	last  int                // the highest number
}

func newMessageTable(fields map[string]*fieldValue) (*messageTable, error) {
	t := &messageTable{
		texts: make(map[int]state.JSON, len(fields)),
		first: make(map[state.JSON]int, len(fields)),
	}
	for field, v := range fields {
		n, ok := messageNumber(field)
		if !ok {
			return nil, corrupt(jsontext.Path("$.message", fault.Clip(field)), "not the number of a message")
		}
		t.add(n, v.json())
	}
	return t, nil
}

func (t *messageTable) add(n int, text state.JSON) {
	t.texts[n] = text
	if first, ok := t.first[text]; !ok || n < first {
		t.first[text] = n
	}
	t.last = max(t.last, n)
}

// set notes that a field of PartMessage is set. It reports false if the table
// has to be built again, which is the case unless the message is new.
func (t *messageTable) set(field string, v *fieldValue) bool {
	n, ok := messageNumber(field)
	if !ok || v == nil || t.texts[n] != "" {
		return false
	}
	t.add(n, v.json())
	return true
}

// decode returns the messages with these numbers.
func (t *messageTable) decode(numbers []int) ([]state.Message, error) {
	msgs := make([]state.Message, len(numbers))
	for i, n := range numbers {
		m, err := state.DecodeMessage([]byte(t.texts[n]))
		if err != nil {
			return nil, fmt.Errorf("%w: content: message %d: %w", ErrCorrupt, n, err)
		}
		msgs[i] = m
	}
	return msgs, nil
}

// maxNumber is the highest number of a message: an int on every platform.
const maxNumber = math.MaxInt32

// messageNumber reads the number of a message.
func messageNumber(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// interner finds the numbers of messages that a document has already, and gives
// new numbers to others.
type interner struct {
	*messageTable
	added      []state.JSON       // the new messages, numbered from last+1
	firstAdded map[state.JSON]int // the lowest number of each text of added
	effects    []state.Effect     // add the new messages to the document
}

func newInterner(t *messageTable) *interner {
	return &interner{messageTable: t, firstAdded: map[state.JSON]int{}}
}

// newMessages returns the effects that add the new messages. Numbers are never
// used again, so a document can run out of them.
func (in *interner) newMessages() ([]state.Effect, error) {
	if last := in.last + len(in.added); len(in.added) > 0 && last > maxNumber {
		return nil, &state.LimitError{Name: "message numbers", Limit: maxNumber, Got: last}
	}
	return in.effects, nil
}

func (in *interner) text(n int) state.JSON {
	if i := n - in.last - 1; i >= 0 && i < len(in.added) {
		return in.added[i]
	}
	return in.texts[n]
}

// add gives a message a new number even if an equal one is there.
func (in *interner) add(m state.Message) int {
	text := m.Raw()
	in.added = append(in.added, text)
	n := in.last + len(in.added)
	if _, ok := in.firstAdded[text]; !ok {
		in.firstAdded[text] = n
	}
	in.effects = append(in.effects, setEffect(PartMessage, strconv.Itoa(n), text))
	return n
}

// find returns a number of a message: the number after previous if it has that
// one, which keeps ranges together, else its lowest, else a new one.
func (in *interner) find(m state.Message, previous int) int {
	text := m.Raw()
	if in.text(previous+1) == text {
		return previous + 1
	}
	if n, ok := in.first[text]; ok {
		return n
	}
	if n, ok := in.firstAdded[text]; ok {
		return n
	}
	return in.add(m)
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

// addAll gives all messages new numbers.
func (in *interner) addAll(msgs []state.Message) []int {
	numbers := make([]int, len(msgs))
	for i, m := range msgs {
		numbers[i] = in.add(m)
	}
	return numbers
}

// renumber returns the numbers of an edited list of messages: those of the old
// list keep their numbers, and others get new ones.
func (in *interner) renumber(numbers []int, msgs, edited []state.Message) []int {
	known := make(map[state.Message]int, len(msgs))
	for i, m := range msgs {
		known[m] = numbers[i]
	}
	list := make([]int, len(edited))
	for i, m := range edited {
		n, ok := known[m]
		if !ok {
			n = in.add(m)
		}
		list[i] = n
	}
	return list
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

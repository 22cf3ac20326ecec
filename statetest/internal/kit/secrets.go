package kit

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Secrets masks the values of the Secret fields of some states in what the kit
// prints. It reads the fields each time, whatever the rights of the handles, and
// remembers what it has read: a value that is replaced later stays masked. It
// is safe for concurrent use.
type Secrets struct {
	mu      sync.Mutex
	states  []*state.State
	values  []secret // the longest first
	numbers map[string]int
}

// secret is one value, with a Redactor of its own: its mask has a number.
type secret struct {
	text     string
	redactor *redact.Redactor
	pieces   Pieces
}

// NewSecrets returns the secrets of states.
func NewSecrets(states ...*state.State) *Secrets {
	s := &Secrets{numbers: map[string]int{}}
	s.Add(states...)
	return s
}

// Add adds the secrets of more states.
func (s *Secrets) Add(states ...*state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range states {
		if st != nil && !slices.Contains(s.states, st) {
			s.states = append(s.states, st)
		}
	}
}

const (
	plainMask = "[SECRET]"
	keptMask  = "[SECRET\x00]" // stands for a mask that a text has already
)

// Mask returns text with [SECRET 1], [SECRET 2] … in place of the secrets, in the
// encodings that a Redactor finds, and of pieces of them. Equal values have
// equal numbers.
func (s *Secrets) Mask(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.states {
		inside.Hidden(st, "", func(_ string, _ bool, v any) {
			for _, leaf := range Leaves(v) {
				s.learn(leaf)
			}
		})
	}
	text = strings.ReplaceAll(text, plainMask, keptMask)
	for _, v := range s.values {
		masked := v.redactor.Redact(text)
		for _, span := range slices.Backward(v.pieces.In(Fold(masked))) {
			masked = masked[:span[0]] + plainMask + masked[span[1]:]
		}
		if masked != text {
			text = strings.ReplaceAll(masked, plainMask, s.label(v.text))
		}
	}
	return strings.ReplaceAll(text, keptMask, plainMask)
}

func (s *Secrets) learn(leaf value.Leaf) {
	at, found := slices.BinarySearchFunc(s.values, leaf.Text, func(v secret, text string) int {
		return cmp.Or(cmp.Compare(len(text), len(v.text)), cmp.Compare(v.text, text))
	})
	if !found && IsSearchable(leaf) {
		r := redact.New([]redact.Secret{redact.Secret(leaf)})
		s.values = slices.Insert(s.values, at, secret{leaf.Text, r, PiecesOf(leaf)})
	}
}

// Label returns the mask of a value.
func (s *Secrets) Label(value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.label(value)
}

// label is Label for a caller that holds the mutex.
func (s *Secrets) label(value string) string {
	n, ok := s.numbers[value]
	if !ok {
		n = len(s.numbers) + 1
		s.numbers[value] = n
	}
	return "[SECRET " + strconv.Itoa(n) + "]"
}

// Leaves returns the parts of a value that texts can repeat. Those of messages
// are what they say: the words of the protocol are in every conversation.
func Leaves(v any) []value.Leaf {
	msgs, ok := v.([]state.Message)
	if !ok {
		return value.Leaves(reflect.ValueOf(v))
	}
	var said []any
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			said = append(said, m.Text())
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				said = append(said, c.Input)
			}
		case state.ToolResultMessage:
			said = append(said, m.Content())
		}
	}
	return value.Leaves(reflect.ValueOf(said))
}

// minDigits is the least number of digits of a number that is looked for.
const minDigits = 4

var digits = regexp.MustCompile(`\d`)

// IsSearchable reports whether texts that have the value by chance are few
// enough to look for it.
func IsSearchable(leaf value.Leaf) bool {
	return !leaf.Number || len(digits.FindAllString(leaf.Text, -1)) >= minDigits
}

const (
	longBytes  = 16 // of a value whose pieces are looked for
	pieceBytes = 12
	pieceKinds = 5 // different bytes of a piece at least: a line of dashes is none
)

// Pieces are the pieces of a long value, folded.
type Pieces map[string]bool

// PiecesOf returns the pieces of a value.
func PiecesOf(leaf value.Leaf) Pieces {
	p := Pieces{}
	if len(leaf.Text) < longBytes || leaf.Number {
		return p
	}
	folded := Fold(leaf.Text)
	for i := range len(folded) - pieceBytes + 1 {
		piece := []byte(folded[i : i+pieceBytes])
		slices.Sort(piece)
		if len(slices.Compact(piece)) >= pieceKinds {
			p[folded[i:i+pieceBytes]] = true
		}
	}
	return p
}

// In returns where a folded text has pieces: from and to. Spans do not overlap.
func (p Pieces) In(folded string) (spans [][2]int) {
	for i := 0; len(p) > 0 && i+pieceBytes <= len(folded); i++ {
		if !p[folded[i:i+pieceBytes]] {
			continue
		}
		if n := len(spans); n > 0 && i <= spans[n-1][1] {
			spans[n-1][1] = i + pieceBytes
		} else {
			spans = append(spans, [2]int{i, i + pieceBytes})
		}
	}
	return spans
}

// Fold returns text in lower case, with spaces for the + that stand for them in
// URLs. Every byte stays at its place.
func Fold(text string) string {
	folded := []byte(text)
	for i, r := range text {
		low := unicode.ToLower(r)
		if r == '+' {
			low = ' '
		}
		if low != r && utf8.RuneLen(low) == utf8.RuneLen(r) {
			utf8.EncodeRune(folded[i:], low)
		}
	}
	return string(folded)
}

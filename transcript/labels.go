package transcript

import (
	"fmt"
	"strings"
)

// Labels says which texts are an id or a name. Lengths are in bytes.
type Labels struct {
	// Chars are the characters of a label, as in a regular expression between
	// brackets: "a-zA-Z0-9_-". They are visible ASCII characters and include the
	// digits, of which Repair makes labels that differ. Empty stands for any.
	Chars string

	// First are the characters with which a label may begin, empty for all of
	// Chars.
	First string

	// MinBytes is the least length, and MaxBytes the greatest (default: no
	// limit). Repair needs room: an id may have 8 bytes, and a name 16.
	MinBytes, MaxBytes int
}

// What Repair needs of the longest label.
const (
	minIDs   = 8
	minNames = 16
)

// The lengths of the labels that Repair makes, which every built-in profile
// accepts, and of which characters they are.
const (
	maxNewID   = 40
	maxNewName = 64

	portable = "a-zA-Z0-9_-"
)

// check returns a member that is wrong, and what is wrong with it.
func (l Labels) check(room int) (member, problem string) {
	chars, ok := parseClass(l.Chars)
	if !ok {
		return "Chars", wantClass
	}
	first, ok := parseClass(l.First)
	switch {
	case !ok:
		return "First", wantClass
	case l.Chars != "" && !chars.hasAll("0123456789"):
		return "Chars", "want the digits"
	case l.Chars != "" && !chars.hasAll(first.text()):
		return "First", "want characters of Chars"
	case l.MaxBytes < 0 || l.MaxBytes > 0 && l.MaxBytes < room:
		return "MaxBytes", fmt.Sprintf("want 0, or at least %d", room)
	case l.MinBytes < 0 || l.MinBytes > maxNewID || l.MaxBytes > 0 && l.MinBytes > l.MaxBytes:
		return "MinBytes", fmt.Sprintf("want at most %d and MaxBytes", maxNewID)
	}
	return "", ""
}

const wantClass = "want visible ASCII characters and ranges of them"

// labels are Labels made ready for texts.
type labels struct {
	chars, first *charSet // nil for any
	min, max     int      // max is 0 for no limit

	made    *charSet // the characters of new labels
	newMax  int      // the length of new labels
	initial string   // begins a new label that would begin with a wrong character
	joint   string   // stands for characters that are not accepted, and before numbers
}

func newLabels(from Labels, newMax int) *labels {
	l := &labels{
		chars: newCharSet(from.Chars), first: newCharSet(from.First),
		min: from.MinBytes, max: from.MaxBytes,
		made: newCharSet(portable), newMax: newMax,
	}
	if l.max > 0 {
		l.newMax = min(l.newMax, l.max)
	}
	if l.chars != nil {
		for c := range l.made {
			l.made[c] = l.made[c] && l.chars[c]
		}
	}
	for _, joint := range []string{"_", "-"} {
		if l.joint == "" && l.made.has(joint[0]) {
			l.joint = joint
		}
	}
	if l.first != nil {
		if l.initial = "_"; !l.first.has('_') {
			l.initial = l.first.text()[:1]
		}
	}
	return l
}

// accept reports whether a text is a label.
func (l *labels) accept(text string) bool {
	if text == "" || len(text) < l.min || l.max > 0 && len(text) > l.max || l.first != nil && !l.first.has(text[0]) {
		return false
	}
	return l.chars == nil || l.chars.hasAll(text)
}

// newLabel returns a label that begins like the text, or like other if the text
// is empty, and ends with a number. It leaves out the number 0.
func (l *labels) newLabel(text, other string, number uint64, digits int) string {
	end := ""
	if number > 0 {
		end = l.joint + fmt.Sprintf("%0*d", digits, number)
	}
	if text == "" {
		text = other
	}
	var b strings.Builder
	for _, c := range text {
		if b.Len() >= l.newMax {
			break
		}
		if c < 128 && l.made.has(byte(c)) {
			b.WriteByte(byte(c))
		} else {
			b.WriteString(l.joint)
		}
	}
	begin := b.String()
	if l.first != nil && (begin == "" || !l.first.has(begin[0])) {
		begin = l.initial + begin
	}
	begin = begin[:min(len(begin), max(0, l.newMax-len(end)))]
	if missing := l.min - len(begin) - len(end); missing > 0 || begin+end == "" {
		begin += strings.Repeat("0", max(missing, 1))
	}
	return begin + end
}

// labelSet makes labels that are unique.
type labelSet struct {
	*labels
	taken map[string]bool
	last  map[string]uint64 // by the beginning of labels, the last number behind it
}

func newLabelSet(l *labels) labelSet { return labelSet{l, map[string]bool{}, map[string]uint64{}} }

// unique returns a label for a text if it is not taken, or else one with a
// number. The beginning of a label with a number is short enough for any
// number: otherwise labels of several beginnings could get each other's, and
// the search for one that is not taken would not end soon.
func (s labelSet) unique(text, other string) string {
	label := s.newLabel(text, other, 0, 0)
	begin := label[:min(len(label), s.newMax-numberRoom)]
	for s.taken[label] {
		s.last[begin] = max(s.last[begin], 1) + 1
		label = s.newLabel(begin, other, s.last[begin], 0)
	}
	s.taken[label] = true
	return label
}

// numberRoom is the length of a joint and a number.
const numberRoom = minIDs - 1

// charSet is a set of ASCII characters.
type charSet [128]bool

// newCharSet returns the set of a class, nil if it is empty.
func newCharSet(class string) *charSet {
	if class == "" {
		return nil
	}
	set, _ := parseClass(class) // checked before
	return set
}

// parseClass reads characters and ranges of them, such as "a-z_".
func parseClass(class string) (*charSet, bool) {
	var set charSet
	for i := 0; i < len(class); i++ {
		first, last := class[i], class[i]
		if i+2 < len(class) && class[i+1] == '-' {
			last = class[i+2]
			i += 2
		}
		if first <= ' ' || last > '~' || first > last {
			return nil, false
		}
		for c := first; c <= last; c++ {
			set[c] = true
		}
	}
	return &set, true
}

func (s *charSet) has(c byte) bool { return c < 128 && s[c] }

// hasAll reports whether all characters of a text are in the set.
func (s *charSet) hasAll(text string) bool {
	if s == nil {
		return true
	}
	for i := range len(text) {
		if !s.has(text[i]) {
			return false
		}
	}
	return true
}

// text returns the characters of the set in their order.
func (s *charSet) text() string {
	var b []byte
	for c, ok := range s {
		if ok {
			b = append(b, byte(c))
		}
	}
	return string(b)
}

package redact

// automaton finds all of many patterns in one pass over a text (Aho and Corasick's method). Patterns
// are added first, then linked; after that it does not change.
type automaton struct {
	states []state // states[0] is the root
	first  [256]int32
	pairs  [1 << 16 / 64]uint64 // the two bytes with which a pattern may begin
}

// state stands for the longest beginning of a pattern that the text read so far ends with. Links to
// other states are indexes; 0 is none.
type state struct {
	child, sibling int32 // the states one byte further on are a list
	fail           int32 // for the next shorter beginning
	match          int32 // the state of the longest pattern that the text read so far ends with
	length         int32 // of the pattern that ends here, or 0
	b              byte
	token          bool // the pattern that ends here counts as a whole token only
}

// add makes pattern one of those to look for. A pattern that is added twice is a token only if it is
// one both times.
func (a *automaton) add(pattern string, token bool) {
	if len(a.states) == 0 {
		a.states = make([]state, 1)
	}
	at := int32(0)
	for i := range len(pattern) {
		next := a.child(at, pattern[i])
		if next == 0 {
			next = int32(len(a.states))
			a.states = append(a.states, state{b: pattern[i], sibling: a.states[at].child})
			a.states[at].child = next
			if at == 0 {
				a.first[pattern[i]] = next
			}
		}
		at = next
	}
	end := &a.states[at]
	end.token = token && (end.length == 0 || end.token)
	end.length = int32(len(pattern))

	head := int(pattern[0]) << 8
	if len(pattern) > 1 {
		head |= int(pattern[1])
		a.pairs[head/64] |= 1 << (head % 64)
		return
	}
	for i := range 256 / 64 {
		a.pairs[head/64+i] = ^uint64(0)
	}
}

// link completes the automaton, from the root down.
func (a *automaton) link() {
	if len(a.states) == 0 {
		return
	}
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := a.states[at].child; c != 0; c = a.states[c].sibling {
			s := &a.states[c]
			if at != 0 {
				s.fail = a.next(a.states[at].fail, s.b)
			}
			s.match = a.states[s.fail].match
			if s.length > 0 {
				s.match = c
			}
			queue = append(queue, c)
		}
	}
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.first[b]
	}
	c := a.states[at].child
	for c != 0 && a.states[c].b != b {
		c = a.states[c].sibling
	}
	return c
}

func (a *automaton) next(at int32, b byte) int32 {
	for {
		if c := a.child(at, b); c != 0 || at == 0 {
			return c
		}
		at = a.states[at].fail
	}
}

// each calls accept for the patterns that end at each place of text, the longest first, until accept
// reports true: what ends at the same place and is shorter lies inside.
func (a *automaton) each(text []byte, accept func(from, to int, token bool) bool) {
	at := int32(0)
	for i := 0; i < len(text); i++ {
		if at == 0 {
			for ; i+1 < len(text); i++ {
				if head := int(text[i])<<8 | int(text[i+1]); a.pairs[head/64]&(1<<(head%64)) != 0 {
					break
				}
			}
		}
		at = a.next(at, text[i])
		for m := a.states[at].match; m != 0; m = a.states[a.states[m].fail].match {
			if s := &a.states[m]; accept(i+1-int(s.length), i+1, s.token) {
				break
			}
		}
	}
}

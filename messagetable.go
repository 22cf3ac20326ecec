package state

import (
	"sync"

	"github.com/agentstate/state/internal/persist"
)

// messageTable holds messages, each text once. It is immutable but for its
// maker: a copy can grow independently.
type messageTable struct {
	messages persist.Sequence[Message]
	index    *placeIndex // nil until it is needed
}

// placeIndex finds the places of messages in a table. All tables that come from
// one another share it: what it says is checked, since a place may be that of
// another message in another table. It has all places of each of them.
type placeIndex struct {
	mu    sync.Mutex
	first map[uint64]int32 // by the hash of the message
	more  map[uint64][]int32
	len   int
}

func newPlaceIndex(messages *persist.Sequence[Message]) *placeIndex {
	x := &placeIndex{first: make(map[uint64]int32, messages.Len())}
	for i, m := range messages.All() {
		x.add(m.hash(), int32(i))
	}
	return x
}

// makeRoomFor makes an index in which n messages have room, for an empty table.
func (t *messageTable) makeRoomFor(n int) {
	t.index = &placeIndex{first: make(map[uint64]int32, n)}
}

// add notes a place of messages with a hash.
func (x *placeIndex) add(hash uint64, place int32) {
	first, ok := x.first[hash]
	switch {
	case !ok:
		x.first[hash] = place
	case first == place:
		return
	default:
		for _, p := range x.more[hash] {
			if p == place {
				return
			}
		}
		if x.more == nil {
			x.more = map[uint64][]int32{}
		}
		x.more[hash] = append(x.more[hash], place)
	}
	x.len++
}

func (t *messageTable) len() int { return t.messages.Len() }

func (t *messageTable) at(i int) Message { return t.messages.At(i) }

// holds reports whether a place is that of a message.
func (t *messageTable) holds(place int, m Message) bool {
	return place < t.messages.Len() && sameMessage(t.messages.At(place), m)
}

// add puts a message at the end of the table. It must not be in it.
func (t *messageTable) add(m Message) int {
	place := t.messages.Len()
	t.messages = t.messages.Append(m)
	if t.index != nil {
		t.index.mu.Lock()
		defer t.index.mu.Unlock()
		t.index.add(m.hash(), int32(place))
	}
	return place
}

// find returns the place of a message in the table, to which it adds the
// message if it is not in it.
func (t *messageTable) find(m Message) (place int, added bool) {
	t.lockIndex()
	defer t.index.mu.Unlock()
	hash := m.hash()
	if first, ok := t.index.first[hash]; ok {
		if t.holds(int(first), m) {
			return int(first), false
		}
		for _, p := range t.index.more[hash] {
			if t.holds(int(p), m) {
				return int(p), false
			}
		}
	}
	place = t.messages.Len()
	t.messages = t.messages.Append(m)
	t.index.add(hash, int32(place))
	return place, true
}

// lockIndex locks the index. It makes one if there is none, or if most places
// in the shared one belong to other tables.
func (t *messageTable) lockIndex() {
	if t.index != nil {
		t.index.mu.Lock()
		if t.index.len <= 2*t.messages.Len()+64 {
			return
		}
		t.index.mu.Unlock()
	}
	t.index = newPlaceIndex(&t.messages)
	t.index.mu.Lock()
}

// messageRun is a part of a table: from one place up to, not including,
// another.
type messageRun struct{ from, to int }

// placesIn returns the places of runs, one by one, with room for more.
func placesIn(runs []messageRun, more int) []int {
	n := more
	for _, r := range runs {
		n += r.to - r.from
	}
	places := make([]int, 0, n)
	for _, r := range runs {
		for p := r.from; p < r.to; p++ {
			places = append(places, p)
		}
	}
	return places
}

// runsOf is the inverse of placesIn.
func runsOf(places []int) []messageRun {
	var runs []messageRun
	for _, p := range places {
		if last := len(runs) - 1; last >= 0 && runs[last].to == p {
			runs[last].to++
		} else {
			runs = append(runs, messageRun{p, p + 1})
		}
	}
	return runs
}

// interner turns lists of messages into runs of a table, to which it adds the
// messages that are not in it.
type interner struct {
	table *messageTable
	runs  []messageRun // of all lists
	begin int          // the first of the present list
	next  int          // the place where the next message may be, or -1
	// guide are the runs of a list that the present one may continue. If it is
	// not empty, next is in its first run.
	guide []messageRun
	bytes int // of the messages that were added
}

// start begins a list that may begin with the messages of another one, or with
// later ones of it.
func (in *interner) start(first Message, guide []messageRun) {
	in.next, in.guide = -1, nil
	if len(guide) > 0 && sameMessage(in.table.at(guide[0].from), first) {
		in.next, in.guide = guide[0].from, guide
		return
	}
	for i, r := range guide {
		for place := r.from; place < r.to; place++ {
			if in.table.at(place) == first {
				in.next, in.guide = place, guide[i:]
				return
			}
		}
	}
}

// add adds a message to the present list.
func (in *interner) add(m Message) {
	place := in.next
	if place < 0 || !in.table.holds(place, m) {
		var added bool
		if place, added = in.table.find(m); added {
			in.bytes += tableBytes(m)
		}
		for len(in.guide) > 0 && (place < in.guide[0].from || place >= in.guide[0].to) {
			in.guide = in.guide[1:]
		}
	}
	if last := len(in.runs) - 1; last >= in.begin && in.runs[last].to == place {
		in.runs[last].to++
	} else {
		in.runs = append(in.runs, messageRun{place, place + 1})
	}
	in.next = place + 1
	if len(in.guide) > 0 && in.guide[0].to == in.next {
		if in.guide = in.guide[1:]; len(in.guide) > 0 {
			in.next = in.guide[0].from
		}
	}
}

// list adds a whole list and returns where its runs begin.
func (in *interner) list(msgs []Message, guide []messageRun) (begin int) {
	in.begin = len(in.runs)
	if len(msgs) > 0 && guide != nil {
		in.start(msgs[0], guide)
	}
	for _, m := range msgs {
		in.add(m)
	}
	return in.begin
}

// tableBytes is what a message in a table takes, about.
func tableBytes(m Message) int { return m.size() + 64 }

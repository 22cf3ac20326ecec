package transcript

// countOne is the count of each message for KeepLast.
func countOne(int) int { return 1 }

// keep returns the indexes of the messages that a Trim keeps, with those that it
// has to.
func (o *packedShapes) keep(limit int, count func(i int) int, also ...int) []int {
	w := newSelection(o, count)
	w.keepAlways()
	for _, i := range also {
		if !w.kept[i] {
			w.keepMessages(w.withRequests(w.groups[w.groupOf[i]])...)
		}
	}
	w.keepLatest(max(limit, 0))
	kept := make([]int, 0, w.size)
	for i, keep := range w.kept {
		if keep {
			kept = append(kept, i)
		}
	}
	return kept
}

// selection is the part of a conversation that a Trim keeps.
type selection struct {
	*packedShapes
	count   func(i int) int
	groups  [][]int
	groupOf []int  // of each message, the number of its group
	request []int  // of each message, the request before it, or none
	kept    []bool // of each message
	size    int    // the number of the kept messages
	counts  []int  // of each message, none if not counted yet
	total   int    // the count of the kept messages
	more    []int  // what withRequests has returned, whose memory it uses again
}

func newSelection(o *packedShapes, count func(i int) int) *selection {
	n := len(o.shapes)
	numbers := make([]int, 3*n)
	w := &selection{
		packedShapes: o,
		count:        count,
		groups:       o.groups(),
		groupOf:      numbers[:n],
		request:      numbers[n : 2*n],
		kept:         make([]bool, n),
		counts:       numbers[2*n:],
	}
	for number, group := range w.groups {
		for _, i := range group {
			w.groupOf[i], w.counts[i] = number, none
		}
	}
	last, best := none, 1
	for i := range o.shapes {
		w.request[i] = last
		if rank := w.requestRank(i); rank >= best {
			last, best = i, rank
		}
	}
	return w
}

// rankRequest is the rank of a request of the user.
const rankRequest = 3

// requestRank ranks a message as the request that later messages are about. The
// best is a text of the user. Before the first of these, it is a result whose
// call the provider holds, and before the first of these an item of the user.
// The message must begin its group.
func (w *selection) requestRank(i int) int {
	if w.groups[w.groupOf[i]][0] != i {
		return 0
	}
	switch t := w.shapes[i]; {
	case t.has(shapeAnswer):
		if w.answers[i] == none {
			return 2
		}
	case t.has(shapeUser | shapeItem):
		return 1
	case t.has(shapeUser) && !t.has(shapeReasoning):
		return rankRequest
	}
	return 0
}

// keepAlways keeps the system prompt with what belongs to it, and the calls that
// wait for their results with their requests.
func (w *selection) keepAlways() {
	for i, t := range w.shapes {
		if !t.has(shapeSystem) {
			break
		}
		if !w.kept[i] {
			w.keepMessages(w.groups[w.groupOf[i]]...)
		}
	}
	for _, c := range w.calls {
		if c.result == none && !w.kept[c.message] { // groups are kept as a whole
			w.keepMessages(w.withRequests(w.groups[w.groupOf[c.message]])...)
		}
	}
}

// keepLatest keeps groups with their requests while the total is within the
// limit, those that end last first.
func (w *selection) keepLatest(limit int) {
	latest := len(w.shapes) - 1
	for i := latest; i >= 0; i-- {
		group := w.groups[w.groupOf[i]]
		if w.kept[i] || group[len(group)-1] != i {
			continue
		}
		more := w.withRequests(group)
		if i < latest && w.totalWith(more) > limit {
			return
		}
		w.keepMessages(more...)
	}
}

// withRequests returns the messages of a group and of the groups of the
// requests before them that are not kept yet: if they were repeated for each
// group, the time would be quadratic. They are valid until the next call.
func (w *selection) withRequests(group []int) []int {
	more, last := append(w.more[:0], group...), none
	for _, i := range group {
		request := w.request[i]
		if request == none || request == last || w.requestRank(i) == rankRequest {
			continue
		}
		if last = request; w.groupOf[request] != w.groupOf[i] && !w.kept[request] {
			more = append(more, w.groups[w.groupOf[request]]...)
		}
	}
	w.more = more
	return more
}

// totalWith returns the total if the messages were kept as well.
func (w *selection) totalWith(messages []int) int {
	total := w.total
	for _, i := range messages {
		if w.kept[i] {
			continue
		}
		if w.counts[i] == none {
			w.counts[i] = max(w.count(i), 0)
		}
		total = addCounts(total, w.counts[i])
	}
	return total
}

func (w *selection) keepMessages(messages ...int) {
	w.total = w.totalWith(messages)
	for _, i := range messages {
		if !w.kept[i] {
			w.kept[i] = true
			w.size++
		}
	}
}

// KeepLast returns the indexes of at most n messages, as the Trim of the function
// [KeepLast] keeps them.
func (s Shapes) KeepLast(n int) []int { return s.pack().keep(n, countOne) }

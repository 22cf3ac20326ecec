package ledger

import (
	"context"
	"iter"
	"slices"
	"strings"
)

// blobList is a list of entries, each of which names a blob, that grows at its
// end and shrinks at its front. The entries have consecutive numbers. A head
// has only the newest of them: as soon as the numbers come to a multiple of
// listFanout, the newest entries move to a list blob, whose name is an entry of
// the next level, and so on.
//
//	level 2:  [0,16)                  a blob with the names of 4 lists of level 1
//	level 1:  [16,20) [20,24)         blobs with 4 entries each
//	level 0:  24 25 26                entries
//
// So the head has at most listFanout-1 names for each level, and which numbers
// a name stands for follows from its level and its place, counted from the end.
type blobList struct {
	First  uint64   `json:"first"` // the number of the first entry
	Next   uint64   `json:"next"`  // the number of the entry that is added next
	Levels []string `json:"levels,omitempty"`
}

// listFanout is the number of names in a list blob. It is a variable so that
// tests reach high levels with few entries.
var listFanout uint64 = 4

// listSeparator stands between names. No name contains it.
const listSeparator = ","

// listNode is an entry, or the name of a list blob with the numbers below it.
type listNode struct {
	text     string
	level    int
	from, to uint64
}

// readBlob returns the content of the blob with a name.
type readBlob func(ctx context.Context, name string) ([]byte, error)

// readLists returns the contents of list blobs of a level, in the order of their
// names, at least that of the first. With an error, it returns those before the
// first that cannot be read.
type readLists func(ctx context.Context, level int, names []string) ([][]byte, error)

func (l *blobList) len() uint64 { return l.Next - l.First }

// names returns the names of a level, the oldest first.
func (l *blobList) names(level int) []string {
	if level >= len(l.Levels) || l.Levels[level] == "" {
		return nil
	}
	return strings.Split(l.Levels[level], listSeparator)
}

func (l *blobList) setNames(level int, names []string) {
	for len(l.Levels) <= level {
		l.Levels = append(l.Levels, "")
	}
	l.Levels[level] = strings.Join(names, listSeparator)
	for n := len(l.Levels); n > 0 && l.Levels[n-1] == ""; n-- {
		l.Levels = l.Levels[:n-1]
	}
}

// push adds an entry. write writes a list blob and returns its name.
func (l *blobList) push(entry string, write func(list []byte) (name string)) {
	l.Levels = slices.Clone(l.Levels) // heads share it
	l.setNames(0, append(l.names(0), entry))
	l.Next++
	for level, size := 0, listFanout; l.Next%size == 0; level, size = level+1, size*listFanout {
		name := write([]byte(strings.Join(l.names(level), listSeparator)))
		l.setNames(level, nil)
		l.setNames(level+1, append(l.names(level+1), name))
	}
}

// nodes returns the names of a level with their numbers. end is the number
// after the last.
func nodes(names []string, level int, end uint64) []listNode {
	size := uint64(1)
	for range level {
		size *= listFanout
	}
	end = end / size * size
	list := make([]listNode, len(names))
	for i := range names {
		to := end - uint64(len(names)-1-i)*size
		list[i] = listNode{text: names[i], level: level, from: to - size, to: to}
	}
	return list
}

// walk yields the entries with numbers from a first one up to a last one, which
// it excludes, and the lists that contain them. A list comes after what is below
// it. It reads lists that stand side by side together.
func (l *blobList) walk(ctx context.Context, from, to uint64, read readLists) iter.Seq2[listNode, error] {
	from = max(from, l.First)
	return func(yield func(listNode, error) bool) {
		// below yields the nodes of one level, and what is below them.
		var below func(list []listNode) bool
		below = func(list []listNode) bool {
			list = slices.DeleteFunc(list, func(n listNode) bool { return n.to <= from || n.from >= to })
			for len(list) > 0 {
				some, level := list, list[0].level
				var failed error
				if level > 0 {
					texts, err := read(ctx, level, nodeTexts(list))
					some, failed = list[:len(texts)], err
					var inside []listNode
					for i, text := range texts {
						inside = append(inside, nodes(strings.Split(string(text), listSeparator), level-1, list[i].to)...)
					}
					if !below(inside) {
						return false
					}
				}
				for _, n := range some {
					if !yield(n, nil) {
						return false
					}
				}
				if failed != nil {
					yield(listNode{}, failed)
					return false
				}
				list = list[len(some):]
			}
			return true
		}
		for level := len(l.Levels) - 1; level >= 0; level-- {
			if !below(nodes(l.names(level), level, l.Next)) {
				return
			}
		}
	}
}

// all is walk for all entries.
func (l *blobList) all(ctx context.Context, read readLists) iter.Seq2[listNode, error] {
	return l.walk(ctx, l.First, l.Next, read)
}

func nodeTexts(list []listNode) []string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = n.text
	}
	return texts
}

// dropTo drops the entries below a number. It yields them to drop, and the
// lists that are no longer needed.
func (l *blobList) dropTo(ctx context.Context, first uint64, read readLists, drop func(listNode)) error {
	first = min(first, l.Next)
	for n, err := range l.walk(ctx, l.First, first, read) {
		if err != nil {
			return err
		}
		if n.to <= first {
			drop(n)
		}
	}
	l.Levels = slices.Clone(l.Levels)
	for level := len(l.Levels) - 1; level >= 0; level-- {
		left := l.names(level)
		for _, n := range nodes(left, level, l.Next) {
			if n.to <= first {
				left = left[1:]
			}
		}
		l.setNames(level, left)
	}
	l.First = max(l.First, first)
	return nil
}

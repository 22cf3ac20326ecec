package store

import (
	"context"
	"iter"
	"strings"
)

// Lister is a Store that lists keys without reading their values.
type Lister interface {
	Store

	// List yields the keys that begin with prefix, have no slash after it, and
	// sort after after: with the prefix "a/" it yields a/b and not a/b/c. Keys
	// below a slash cost little. Like Scan, it yields in the order of the keys,
	// and each key that exists all the time exactly once. It may also yield keys
	// that were deleted. An error is yielded last.
	List(ctx context.Context, prefix, after string) iter.Seq2[string, error]
}

// ListPages implements [Lister] for a store that reads its keys in pages. The
// function page returns the first keys that begin with prefix and are not less
// than from, in their order, and whether there may be more. It is called again
// for the keys after the page, and after a folder in which the page ends.
func ListPages(
	prefix, after string, page func(from string) (keys []string, more bool, err error),
) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		from := prefix
		if after >= prefix {
			from = after + "\x00" // no key sorts between them
		}
		for more := true; more; {
			var keys []string
			var err error
			if keys, more, err = page(from); err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				name, _, below := strings.Cut(key[len(prefix):], "/")
				if from = key + "\x00"; below {
					from = prefix + name + "0" // follows the slash
				} else if !yield(key, nil) {
					return
				}
			}
		}
	}
}

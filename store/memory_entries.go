package store

import (
	"slices"
	"sort"
	"strings"
)

// entryBlocks is a list of entries sorted by key, split into blocks of at most
// blockSize. No block is empty. A write shifts the entries of one block only.
type entryBlocks [][]Entry

const blockSize = 256

// seek returns the position of the first entry whose key is not less than key,
// and whether that entry has the key. If all keys are less, block is len(b).
func (b entryBlocks) seek(key string) (block, i int, found bool) {
	block = sort.Search(len(b), func(n int) bool { return b[n][len(b[n])-1].Key >= key })
	if block < len(b) {
		i, found = slices.BinarySearchFunc(b[block], key, func(e Entry, key string) int {
			return strings.Compare(e.Key, key)
		})
	}
	return block, i, found
}

func (b entryBlocks) get(key string) (Entry, bool) {
	block, i, found := b.seek(key)
	if !found {
		return Entry{}, false
	}
	return b[block][i], true
}

func (b *entryBlocks) put(e Entry) {
	block, i, found := b.seek(e.Key)
	switch all := *b; {
	case found:
		all[block][i] = e
		return
	case len(all) == 0:
		*b = entryBlocks{{e}}
		return
	case block == len(all): // after the last entry
		block--
		i = len(all[block])
	}
	full := slices.Insert((*b)[block], i, e)
	(*b)[block] = full
	if len(full) > blockSize {
		right := slices.Clone(full[blockSize/2:])
		(*b)[block] = slices.Delete(full, blockSize/2, len(full))
		*b = slices.Insert(*b, block+1, right)
	}
}

// remove reports whether the key existed.
func (b *entryBlocks) remove(key string) bool {
	block, i, found := b.seek(key)
	if !found {
		return false
	}
	(*b)[block] = slices.Delete((*b)[block], i, i+1)
	if len((*b)[block]) == 0 {
		*b = slices.Delete(*b, block, block+1)
	}
	return true
}

// page returns up to n entries whose keys begin with prefix and are not less
// than from.
func (b entryBlocks) page(prefix, from string, n int) []Entry {
	block, i, _ := b.seek(max(prefix, from))
	var page []Entry
	for ; block < len(b); block, i = block+1, 0 {
		for _, e := range b[block][i:] {
			if len(page) == n || !strings.HasPrefix(e.Key, prefix) {
				return page
			}
			page = append(page, e)
		}
	}
	return page
}

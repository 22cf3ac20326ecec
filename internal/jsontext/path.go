package jsontext

import (
	"strconv"

	"github.com/agentstate/state/internal/fault"
)

// shownName is the number of bytes of a member name that a path shows.
const shownName = 128

// Path returns the path of a member: parent.name, or parent["odd name"] if the
// name is not an identifier. It cuts very long names.
func Path(parent, member string) string {
	return string(appendMember([]byte(parent), member))
}

// Index returns the path of an element: parent[i].
func Index(parent string, i int) string {
	return string(appendIndex([]byte(parent), i))
}

func appendIndex(path []byte, i int) []byte {
	return append(strconv.AppendInt(append(path, '['), int64(i), 10), ']')
}

func appendMember(path []byte, name string) []byte {
	if identifier(name) {
		return append(append(path, '.'), name...)
	}
	path = append(path, '[')
	return append(strconv.AppendQuote(path, fault.ClipTo(name, shownName)), ']')
}

func identifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= shownName
}

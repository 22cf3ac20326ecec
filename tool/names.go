package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameBytes is the length of the longest name that some provider accepts.
const maxNameBytes = 128

// checkToolName returns what is wrong with the name of a tool, or "". It
// refuses only what every provider refuses, with one exception: it accepts the
// slash, which MCP servers use and provider.Request.RenameTools replaces where a
// provider refuses it.
func checkToolName(name string) string {
	if name == "" {
		return "no name"
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '-', c == '.', c == ':', c == '/':
		default:
			return "the name has characters other than A-Z a-z 0-9 _ - . : /, which no provider accepts"
		}
	}
	if len(name) > maxNameBytes {
		return "the name has more than 128 bytes, which no provider accepts"
	}
	return ""
}

// sameName reports whether a decoder may take a member with one name for a
// member with the other name. It ignores case as encoding/json and
// mapstructure do, which both follow Unicode's simple folding (ſ is s, and the
// Kelvin sign is k), and where upper or lower case alone make two letters equal
// (ı is i). It ignores _ and - as encoding/json/v2 does for case:ignore.
func sameName(a, b string) bool { return foldName(a) == foldName(b) }

// foldName returns one name for all that are the same for sameName.
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' {
			return -1
		}
		return foldRune(c)
	}, name)
}

// foldRune returns one letter for all that differ only in case.
func foldRune(c rune) rune {
	if c < utf8.RuneSelf {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	c = unicode.ToLower(unicode.ToUpper(c))
	least := c
	for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return unicode.ToLower(least)
}

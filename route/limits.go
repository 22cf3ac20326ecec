package route

import (
	"fmt"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// The limits of the rules of a router. They bound what rules from elsewhere
// cost: the time to read and to ask them, and their memory.
const (
	maxRules    = 1000
	maxJSON     = 2 << 20  // bytes of the rules as JSON, as MarshalJSON writes it
	maxPatterns = 64 << 10 // bytes of all patterns
	maxProgram  = 2000     // instructions of all patterns: Next runs each at every byte of a text
	maxValues   = 10_000   // values of all Ins
	maxText     = 64 << 10 // bytes of a text that Match looks at
	classRunes  = 16       // runes of a class that count as an instruction
)

// parseLimits bound the JSON of a router. Bytes allows for rules of maxJSON that
// are escaped or indented, and Depth for nested predicates and their operands.
var parseLimits = jsontext.Limits{Depth: 256, Bytes: 16 << 20}

// cost is what predicates need of the limits.
type cost struct{ patterns, program, values int }

// add adds the cost of a predicate. It returns the limit that it exceeds.
func (c *cost) add(n *node) *fault.Error {
	c.patterns += n.cost.patterns
	c.program += n.cost.program
	c.values += n.cost.values
	for _, limited := range []struct {
		own, all, limit int
		what            string
	}{
		{n.cost.patterns, c.patterns, maxPatterns, "bytes of patterns"},
		{n.cost.program, c.program, maxProgram, "instructions of compiled patterns"},
		{n.cost.values, c.values, maxValues, "values of in"},
	} {
		if limited.own > 0 && limited.all > limited.limit {
			return &fault.Error{Path: "$.value", Got: fmt.Sprintf(
				"a router has at most %d %s, and has %d up to here", limited.limit, limited.what, limited.all)}
		}
	}
	return nil
}

// checkLimits returns the first limit that each rule exceeds.
func checkLimits(rules []Rule) []*fault.Error {
	if len(rules) > maxRules {
		return []*fault.Error{{
			Path: "$.rules", Got: fmt.Sprintf("a router has at most %d rules, got %d", maxRules, len(rules)),
		}}
	}
	var all cost
	var first *fault.Error
	for i, rule := range rules {
		if rule.when == nil {
			continue
		}
		rule.when.visit(rulePath(i)+".when", func(path string, n *node) {
			if e := all.add(n); e != nil && first == nil {
				first = moveFault(path, e)
			}
		})
	}
	if first != nil {
		return []*fault.Error{first}
	}
	if got := len(rulesJSON(rules)); got > maxJSON {
		return []*fault.Error{{
			Path: "$.rules", Got: fmt.Sprintf("a router has at most %d bytes of JSON, got %d", maxJSON, got),
		}}
	}
	return nil
}

// programSize returns about how many instructions a pattern is compiled to,
// without compiling it. Large classes of characters count as several.
func programSize(re *syntax.Regexp) int {
	size, runes := programParts(re)
	return size + runes/classRunes
}

// programParts returns the number of instructions, and the runes of the classes,
// which the repetitions of a class share.
func programParts(re *syntax.Regexp) (size, runes int) {
	switch re.Op {
	case syntax.OpConcat, syntax.OpRepeat:
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCapture:
		size = 2
	case syntax.OpCharClass:
		size, runes = 1, len(re.Rune)
	default:
		size = 1
	}
	for _, sub := range re.Sub {
		n, r := programParts(sub)
		size, runes = size+n, runes+r
	}
	if re.Op == syntax.OpRepeat {
		// There is an instruction beside each copy that may be absent.
		size = size*max(re.Min, re.Max, 1) + max(re.Max-re.Min, 1)
	}
	return size, runes
}

// clipText returns the part of a text that Match looks at.
func clipText(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

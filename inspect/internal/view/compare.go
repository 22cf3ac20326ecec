package view

import (
	"encoding/json"
	"strings"

	"github.com/agentstate/state"
)

// diffLine is a line of a text, or an element of a list, in a comparison.
type diffLine struct {
	Op   string `json:"op"` // "=", "-" or "+"; "…" stands for lines that are the same
	Text text   `json:"text"`
}

const (
	// maxCompared is the length of the longest value, in bytes, of which a page
	// shows what changed inside.
	maxCompared = 256 << 10
	// maxLines is the number of lines that a page shows of one comparison.
	maxLines = 300
	// contextLines is the number of lines around a change that stayed the same.
	contextLines = 2
	// maxTable is the size of the largest table that compareLines makes.
	maxTable = 1 << 20
)

// compare returns what differs between two masked JSON values: by element if
// both are lists, by line if they are texts or objects, and nothing if they are
// short, or too long.
func compare(before, after string) (unit string, lines []diffLine) {
	if before == "" || after == "" || len(before)+len(after) > 2*maxCompared {
		return "", nil
	}
	unit = "line"
	var a, b []string
	switch {
	case before[0] == '[' && after[0] == '[':
		unit = "element"
		a, b = elements(before), elements(after)
	case before[0] == '"' && after[0] == '"':
		a, b = textLines(state.JSON(before).Text()), textLines(state.JSON(after).Text())
		if len(a) == 1 && len(b) == 1 {
			return "", nil
		}
	case before[0] == '{' && after[0] == '{':
		x, all := indent(before, maxCompared, maxCompared)
		y, alsoAll := indent(after, maxCompared, maxCompared)
		if !all || !alsoAll {
			return "", nil
		}
		a, b = textLines(x), textLines(y)
	default:
		return "", nil
	}
	return unit, shorten(compareLines(a, b))
}

func textLines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

// elements returns the elements of a JSON array, or the whole text as one if it
// is not JSON.
func elements(s string) []string {
	var raw []json.RawMessage
	if json.Unmarshal([]byte(s), &raw) != nil {
		return []string{s}
	}
	list := make([]string, len(raw))
	for i, r := range raw {
		list[i] = string(r)
	}
	return list
}

// edit is a line and what happens to it.
type edit struct {
	op   byte
	line string
}

// compareLines returns the lines of a and b with the longest common subsequence
// of those between their common beginning and end.
func compareLines(a, b []string) []edit {
	var start, end []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		start = append(start, edit{'=', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		end = append(end, edit{'=', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	edits := append(start, middle(a, b)...)
	for i := len(end) - 1; i >= 0; i-- {
		edits = append(edits, end[i])
	}
	return edits
}

func middle(a, b []string) []edit {
	var edits []edit
	if (len(a)+1)*(len(b)+1) > maxTable {
		for _, line := range a {
			edits = append(edits, edit{'-', line})
		}
		for _, line := range b {
			edits = append(edits, edit{'+', line})
		}
		return edits
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and
	// b[j:].
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{'=', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}

// shorten leaves out lines that stay the same, except those next to a change,
// and what is too much. The lines were masked.
func shorten(edits []edit) []diffLine {
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.op == '=' {
			continue
		}
		for j := max(0, i-contextLines); j <= min(len(edits)-1, i+contextLines); j++ {
			near[j] = true
		}
	}
	for i := range edits { // a sign in the place of one line saves nothing
		near[i] = near[i] || (i == 0 || near[i-1]) && (i == len(edits)-1 || near[i+1])
	}
	var lines []diffLine
	for i, e := range edits {
		switch {
		case len(lines) == maxLines:
			return append(lines, diffLine{"…", ""})
		case near[i]:
			short, clipped := clip(e.line, previewBytes)
			line := diffLine{string(e.op), text(visible(short, false))}
			if clipped {
				line.Text += "…"
			}
			lines = append(lines, line)
		case i == 0 || near[i-1]:
			lines = append(lines, diffLine{"…", ""})
		}
	}
	return lines
}

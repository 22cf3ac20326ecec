package statetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// bodyDiff collects the differences of two bodies, a line for each value.
type bodyDiff struct {
	lines []string
	count int
}

// maxDiff bounds the lines that a failure prints.
const maxDiff = 24

func (d *bodyDiff) add(sign, path, text string) {
	d.count++
	if len(d.lines) < maxDiff {
		d.lines = append(d.lines, sign+" "+path+": "+text)
	}
}

// compare adds the differences of the values at a path.
func (d *bodyDiff) compare(path string, want, got any) {
	if reflect.DeepEqual(want, got) {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			names := maps.Clone(want)
			maps.Copy(names, got)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				d.compareMember(jsontext.Path(path, name), want, got, name)
			}
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			d.compareElements(path, want, got)
			return
		}
	case string:
		if got, ok := got.(string); ok {
			from := commonPrefix(want, got)
			d.add("-", path, clipAround(want, from))
			d.add("+", path, clipAround(got, from))
			return
		}
	}
	d.add("-", path, showValue(want))
	d.add("+", path, showValue(got))
}

func (d *bodyDiff) compareMember(path string, want, got map[string]any, name string) {
	w, wanted := want[name]
	g, found := got[name]
	switch {
	case !found:
		d.add("-", path, showValue(w))
	case !wanted:
		d.add("+", path, showValue(g))
	default:
		d.compare(path, w, g)
	}
}

// compareElements compares what is between the elements that two arrays begin
// and end with.
func (d *bodyDiff) compareElements(path string, want, got []any) {
	shorter, start, end := min(len(want), len(got)), 0, 0
	for start < shorter && reflect.DeepEqual(want[start], got[start]) {
		start++
	}
	for end < shorter-start && reflect.DeepEqual(want[len(want)-1-end], got[len(got)-1-end]) {
		end++
	}
	for i := start; i < max(len(want), len(got))-end; i++ {
		at := jsontext.Index(path, i)
		switch {
		case i >= len(got)-end:
			d.add("-", at, showValue(want[i]))
		case i >= len(want)-end:
			d.add("+", at, showValue(got[i]))
		default:
			d.compare(at, want[i], got[i])
		}
	}
}

func (d *bodyDiff) String() string {
	lines := d.lines
	if more := d.count - len(lines); more > 0 {
		lines = append(slices.Clip(lines), fmt.Sprintf("… and %d more lines", more))
	}
	return "      " + strings.Join(lines, "\n      ")
}

func showValue(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return fault.Clip(string(data))
}

func commonPrefix(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// clipAround returns the part of a text around a place, as a literal.
func clipAround(text string, place int) string {
	const around = 60
	from, to := max(0, place-around), min(len(text), place+around)
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	part := fault.Quote(text[from:to])
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}

// nearest returns the recording that differs least from a request, one that is
// left if there is any, and the difference.
func nearest(recordings []*recording, req *cassetteRequest) (best *recording, diff *bodyDiff) {
	for _, left := range []bool{true, false} {
		for _, r := range recordings {
			if r.used == left {
				continue
			}
			d := r.diff(req)
			if best == nil || d.count < diff.count {
				best, diff = r, d
			}
		}
		if best != nil {
			break
		}
	}
	return best, diff
}

// diff compares a request with the recorded one. Another address weighs more
// than any body.
func (r *recording) diff(req *cassetteRequest) *bodyDiff {
	d := &bodyDiff{}
	address := func(r *cassetteRequest) string { return r.Method + " " + r.Host + r.Path }
	if want, got := address(r.request), address(req); want != got {
		d.add("-", "address", want)
		d.add("+", "address", got)
		d.count += 1 << 20
		defer func() { d.count -= 1<<20 - 1<<10 }()
	}
	d.compare("$", r.request.body, req.body)
	return d
}

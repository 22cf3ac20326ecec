package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/agentstate/state/lab/traces"
)

// Without -files, lists in the report have at most these many entries.
const (
	shownNotes  = 12
	shownModels = 3
	shownParts  = 4
)

// vendors writes a row for each vendor.
func (r *report) vendors(out io.Writer) {
	vendors := r.total().Vendors
	if len(vendors) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	title := "exchanges\trefused\t"
	if r.verify {
		title += "false findings\t"
	}
	fmt.Fprintln(w, title+"  vendor and models")
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		v := vendors[name]
		fmt.Fprintf(w, "%d\t%s\t", v.Exchanges, tally(v.Refused))
		if r.verify {
			fmt.Fprintf(w, "%d\t", v.False)
		}
		fmt.Fprintf(w, "  %s: %s\n", vendorName(name), r.most(v.Models, shownModels))
	}
	_ = w.Flush()
}

func vendorName(name string) string {
	if name == "" {
		return "not named"
	}
	return shown(name)
}

// models returns the vendors and models of a file, for its row.
func models(vendors map[string]traces.Vendor) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		list = append(list, strings.TrimSpace(name+" "+strings.Join(slices.Sorted(maps.Keys(vendors[name].Models)), ", ")))
	}
	if text := strings.Join(list, "; "); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// carriages writes a row for each way from one format to another.
func (r *report) carriages(out io.Writer) {
	all := r.total().Carriages
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "carried\tchanged\tcut\tlost\t  from and to, what was changed, and what could not be expressed")
	ways := slices.SortedFunc(maps.Keys(all), func(a, b traces.Way) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, way := range ways {
		c := all[way]
		text := way.From + " → " + way.To
		if len(c.Changes) > 0 {
			text += "; changed: " + r.most(c.Changes, shownParts)
		}
		if len(c.Omissions) > 0 {
			text += "; left out: " + r.most(c.Omissions, shownParts)
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t  %s\n", c.All, c.Changed, c.Cut, c.Lost, text)
	}
	_ = w.Flush()
	fmt.Fprintln(out, "changed: by Repair; cut: something cannot be expressed; lost: nothing is left of a message of the user")
}

// most returns the most frequent names with their numbers.
func (r *report) most(counts traces.Counts, limit int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var list []string
	for i, name := range names {
		if i == limit && !r.perFile {
			list = append(list, fmt.Sprintf("and %d more", len(names)-limit))
			break
		}
		list = append(list, fmt.Sprintf("%s %d", oneLine(name), counts[name]))
	}
	return strings.Join(list, ", ")
}

// noteTitles are the sections of the report, in their order.
var noteTitles = []struct {
	kind  traces.NoteKind
	title string
}{
	{traces.NoteRefused, "requests that a provider refused"},
	{traces.NoteStream, "streams that are not whole"},
	{traces.NoteFinding, "findings in conversations of which it is not known whether a provider accepted them"},
	{traces.NoteUnanswered, "requests without an answer"},
}

// notes writes what is worth a look. Requests without an answer are listed only
// with perFile.
func (r *report) notes(out io.Writer) {
	for _, section := range noteTitles {
		var lines []string
		for _, file := range r.rows {
			for _, note := range file.total.Notes {
				if note.Kind == section.kind {
					lines = append(lines, noteLine(file.name, note))
				}
			}
		}
		if len(lines) == 0 || section.kind == traces.NoteUnanswered && !r.perFile {
			continue
		}
		fmt.Fprintf(out, "\n%s:\n", section.title)
		for i, line := range lines {
			if i == shownNotes && !r.perFile {
				fmt.Fprintf(out, "  … and %d more, which -files lists\n", len(lines)-i)
				break
			}
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
}

func noteLine(file string, note traces.Note) string {
	text := file + ": " + note.Path
	if note.Who != "" {
		text += " (" + note.Who + ")"
	}
	text += ": " + note.Text
	if note.Kind == traces.NoteRefused && !note.Good {
		text += " (Check finds nothing)"
	}
	return oneLine(text)
}

// oneLine returns text without line ends and other control characters.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentstate/state/lab/traces"
)

// report collects the outcome of each file.
type report struct {
	verify   bool
	perFile  bool // print a row for each file
	rows     []row
	others   []remark // files and parts that are not conversations
	failures []remark
}

type row struct {
	name  string
	bytes int
	kinds map[string]*traces.Stats
	total traces.Stats
	ok    bool
}

// remark is a note about a file.
type remark struct{ file, text string }

func (r *report) played(file string, bytes int, p traces.Played) {
	r.rows = append(r.rows, row{shown(file), bytes, p.Kinds, p.Total(), p.Err == nil})
}

// other notes what a file, or a part of it, is if it is not a conversation.
func (r *report) other(file, what string) {
	r.others = append(r.others, remark{file, what})
}

// failed notes an error, or each of several joined errors.
func (r *report) failed(file string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			r.failed(file, err)
		}
		return
	}
	r.failures = append(r.failures, remark{file, err.Error()})
}

func (r *report) ok() bool { return len(r.failures) == 0 && len(r.rows) > 0 }

// total returns the sum of all files.
func (r *report) total() traces.Stats {
	var total traces.Stats
	for _, file := range r.rows {
		total.Add(file.total)
	}
	return total
}

// print writes a row for each kind of conversation with their total, then who
// answered, what was lost on the way to other providers, what is worth a look,
// the parts that are not conversations, and last the failures.
func (r *report) print(out io.Writer) {
	if len(r.rows) == 0 {
		fmt.Fprintln(out, "no conversation was found")
	} else {
		if r.perFile {
			r.files(out)
		}
		r.kinds(out)
	}
	r.vendors(out)
	r.carriages(out)
	r.notes(out)
	if len(r.others) > 0 {
		r.notConversations(out)
	}
	if len(r.failures) > 0 {
		fmt.Fprintf(out, "\n%s:\n", count(len(r.failures), "failure"))
		remarks(out, r.failures)
	}
}

func remarks(out io.Writer, list []remark) {
	for _, m := range list {
		fmt.Fprintf(out, "  %s: %s\n", shown(m.file), m.text)
	}
}

// kindRow counts what was played of one kind.
type kindRow struct {
	files int
	stats traces.Stats
}

// kinds writes a row for each kind of conversation.
func (r *report) kinds(out io.Writer) {
	byKind := map[string]*kindRow{}
	var total kindRow
	for _, file := range r.rows {
		for kind, stats := range file.kinds {
			if byKind[kind] == nil {
				byKind[kind] = &kindRow{}
			}
			byKind[kind].files++
			byKind[kind].stats.Add(*stats)
		}
		total.files++
		total.stats.Add(file.total)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	title := "files\tconversations\trequests\tresponses\tstreams\tnot whole\trefused\tunanswered\tmessages\tcalls\tresults\t"
	if r.verify {
		title += "trims\tcarried\tfalse findings\tverified\t"
	}
	fmt.Fprintln(w, title+"  kind")
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		r.kind(w, kind, byKind[kind])
	}
	r.kind(w, "total", &total)
	_ = w.Flush()
	r.legend(out, total.stats)
}

func (r *report) kind(w io.Writer, name string, k *kindRow) {
	s := k.stats
	fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t",
		k.files, s.Runs, tally(s.Requests), tally(s.Responses), tally(s.Streams), s.NotWhole, tally(s.Refused), s.Unanswered,
		s.Messages, s.Calls, s.Answers)
	if r.verify {
		verdict := "ok"
		if s.Failures > 0 {
			verdict = "FAILED"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t", s.Trims, s.Carried, s.False, verdict)
	}
	fmt.Fprintf(w, "  %s\n", name)
}

// legend explains the columns.
func (r *report) legend(out io.Writer, total traces.Stats) {
	what := "decoded"
	if r.verify {
		what = "decoded and, encoded again, equal"
	}
	fmt.Fprintf(out, "requests, responses, streams: how many were %s, of how many; not whole: streams that broke off, or with an event in error\n", what)
	fmt.Fprintln(out, "refused: of the requests that a provider refused, in how many Check finds something; unanswered: for another reason")
	if !r.verify {
		return
	}
	fmt.Fprintln(out, "trims: conversations that were accepted, trimmed to every length and checked again; carried: repaired for a provider, encoded, decoded and checked")
	if n := total.Results; total.Failures == 0 && total.Checked < n {
		fmt.Fprintf(out, "the whole state was checked after %d of %d steps: the first of each run, and of long runs a sample of the rest\n",
			total.Checked, n)
	}
}

func tally(t traces.Tally) string {
	if t.All == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", t.Good, t.All)
}

// notConversations writes the number of other parts by kind, and with perFile
// their places.
func (r *report) notConversations(out io.Writer) {
	counts := map[string]int{}
	for _, m := range r.others {
		counts[m.text]++
	}
	fmt.Fprintf(out, "\nnot a conversation of a known format:\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%d\t  %s\n", counts[what], what)
	}
	_ = w.Flush()
	if r.perFile {
		remarks(out, r.others)
	}
}

// files writes a row for each file with their total.
func (r *report) files(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	title := "runs\tentries\tmessages\tresults\ttool calls\ttool results\tagents\tbytes\ttime/step\t"
	if r.verify {
		title += "verified\t"
	}
	fmt.Fprintln(w, title+"  file")
	total := row{ok: true}
	for _, line := range r.rows {
		r.file(w, line)
		total.bytes += line.bytes
		total.ok = total.ok && line.ok
		total.total.Add(line.total)
	}
	total.name = "total of " + count(len(r.rows), "file")
	total.total.Vendors = nil // they have a table
	r.file(w, total)
	_ = w.Flush()
	fmt.Fprintln(out)
}

func (r *report) file(w io.Writer, line row) {
	s := line.total
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t",
		s.Runs, s.Entries, s.Messages, s.Results, s.Calls, s.Answers, len(s.Agents), line.bytes, perStep(s))
	if r.verify {
		verdict := "ok"
		switch {
		case !line.ok:
			verdict = "FAILED"
		case s.Checked < s.Results:
			verdict = fmt.Sprintf("ok, %d of %d", s.Checked, s.Results)
		}
		fmt.Fprintf(w, "%s\t", verdict)
	}
	fmt.Fprintf(w, "  %s%s\n", line.name, models(s.Vendors))
}

func perStep(s traces.Stats) string {
	if s.Results == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fµs", float64(s.Time)/float64(time.Microsecond)/float64(s.Results))
}

// shown returns the name of a file on one line, quoted if it has anything odd.
func shown(name string) string {
	if quoted := fmt.Sprintf("%q", name); strings.Trim(quoted, `"`) != name {
		return quoted
	}
	return name
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

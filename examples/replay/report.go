package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentstate/state/internal/traces"
)

// report collects what came of each file.
type report struct {
	verify   bool
	rows     []row
	skips    []remark
	failures []remark
}

type row struct {
	name  string
	bytes int
	stats traces.Stats
	ok    bool
}

// remark is a file and what there is to say about it.
type remark struct{ file, text string }

func (r *report) played(file string, bytes int, stats traces.Stats, ok bool) {
	r.rows = append(r.rows, row{shown(file), bytes, stats, ok})
}

func (r *report) skipped(file, why string) {
	r.skips = append(r.skips, remark{file, why})
}

// failed notes an error, or each of several that are joined.
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

// print writes what was skipped, a row for each file with their total, and last
// what failed.
func (r *report) print(out io.Writer) {
	if len(r.skips) > 0 {
		fmt.Fprintf(out, "skipped %s:\n", count(len(r.skips), "file"))
		remarks(out, r.skips)
		fmt.Fprintln(out)
	}
	if len(r.rows) > 0 {
		r.table(out)
	}
	if len(r.failures) > 0 {
		fmt.Fprintf(out, "\n%s:\n", count(len(r.failures), "failure"))
		remarks(out, r.failures)
	}
	if len(r.rows) == 0 {
		fmt.Fprintln(out, "no trace was found")
	}
}

func remarks(out io.Writer, list []remark) {
	for _, m := range list {
		fmt.Fprintf(out, "  %s: %s\n", shown(m.file), m.text)
	}
}

func (r *report) table(out io.Writer) {
	const head = "runs\tentries\tmessages\tresults\ttool calls\ttool results\tagents\tbytes\ttime/step\t"
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	title := head
	if r.verify {
		title += "verified\t"
	}
	fmt.Fprintln(w, title+"  file")
	total := row{ok: true}
	for _, line := range r.rows {
		r.line(w, line)
		total.bytes += line.bytes
		total.ok = total.ok && line.ok
		total.stats.Add(line.stats)
	}
	total.name = "total of " + count(len(r.rows), "file")
	r.line(w, total)
	_ = w.Flush()
	if n := total.stats.Results; r.verify && total.ok && total.stats.Checked < n {
		fmt.Fprintf(out, "the whole state was checked after %d of %d steps: the first of each run, and of long runs a sample of the rest\n",
			total.stats.Checked, n)
	}
}

func (r *report) line(w io.Writer, line row) {
	s := line.stats
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
	fmt.Fprintf(w, "  %s\n", line.name)
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

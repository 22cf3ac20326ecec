// Command goals reads the output of go test -bench and prints which speed goals
// are met.
//
//	goals bench.txt [ROW]
//
// ROW is a regular expression that picks rows. The exit status is 1 when a row
// falls short of its goal and 2 when a row was not measured: a missing
// benchmark is not a met goal.
package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
)

// The exit statuses, in the order of their weight.
const (
	exitOK = iota
	exitShort
	exitMissing
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) < 1 || len(args) > 2 {
		fmt.Fprintln(stderr, "usage: goals FILE [ROW]")
		return exitMissing
	}
	rows, err := readFile(args[0])
	var pattern *regexp.Regexp
	if err == nil {
		pattern, err = regexp.Compile(strings.Join(args[1:], ""))
	}
	if err != nil {
		fmt.Fprintln(stderr, "goals:", err)
		return exitMissing
	}
	return report(stdout, goals, pattern, rows)
}

func readFile(name string) (map[string]row, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readRows(file, name)
}

// report prints a line for each goal whose row matches and returns the exit
// status. A pattern that matches no row counts as a missing measurement.
func report(w io.Writer, goals []goal, pattern *regexp.Regexp, rows map[string]row) int {
	status, lines := exitOK, 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\twhat\tgoal\tmeasured\t")
	for _, g := range goals {
		if !pattern.MatchString(g.row) {
			continue
		}
		lines++
		figure := g.measure(rows[g.row])
		verdict, shown := "ok", g.limit.show(figure)
		switch {
		case math.IsNaN(figure) || math.IsInf(figure, 0):
			verdict, shown, status = "not measured", "-", exitMissing
		case !g.limit.met(figure):
			verdict, status = "short", max(status, exitShort)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", g.row, g.what, g.limit, shown, verdict)
	}
	table.Flush()
	if lines == 0 {
		fmt.Fprintf(w, "no row matches %q\n", pattern)
		return exitMissing
	}
	return status
}

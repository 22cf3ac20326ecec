// Command goals reads the output of go test -bench and says which speed goals are met.
//
//	go run ./internal/goals bench.txt [ROW]
//
// ROW is a regular expression that picks rows. The exit status is 1 when a row falls short of its goal
// and 2 when a row was not measured: a missing benchmark is not a met goal.
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
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
	pattern := ""
	if len(args) == 2 {
		pattern = args[1]
	}
	rows, err := regexp.Compile(pattern)
	if err != nil {
		fmt.Fprintln(stderr, "goals:", err)
		return exitMissing
	}
	file, err := os.Open(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "goals:", err)
		return exitMissing
	}
	defer file.Close()
	measured, err := parse(file)
	if err != nil {
		fmt.Fprintf(stderr, "goals: %s: %v\n", args[0], err)
		return exitMissing
	}
	return report(stdout, goals, rows, measured)
}

// report prints a line per goal in the rows that match and returns the exit status.
// A pattern that matches no row has measured nothing.
func report(w io.Writer, goals []goal, rows *regexp.Regexp, measured measurements) int {
	status, lines := exitOK, 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\twhat\tgoal\tmeasured\t")
	for _, g := range goals {
		if !rows.MatchString(g.row) {
			continue
		}
		lines++
		value, ok := g.measure(measured.row(g.row))
		verdict, shown := "ok", g.limit.show(value)
		switch {
		case !ok:
			verdict, shown, status = "not measured", "-", exitMissing
		case !g.limit.met(value):
			verdict, status = "short", max(status, exitShort)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", g.row, g.what, g.limit, shown, verdict)
	}
	table.Flush()
	if lines == 0 {
		fmt.Fprintf(w, "no row matches %q\n", rows)
		return exitMissing
	}
	return status
}

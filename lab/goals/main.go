// Command goals reads the output of go test -bench and prints which speed goals
// are met.
//
//	goals bench.txt [ROW]
//	goals -base base.txt bench.txt [ROW]
//
// ROW is a regular expression that picks rows. The exit status is 1 when a row
// falls short of its goal and 2 when a row was not measured: a missing
// benchmark is not a met goal.
//
// With -base it compares the measurements of two versions instead, row by row.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
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
	flags := flag.NewFlagSet("goals", flag.ContinueOnError)
	flags.SetOutput(stderr)
	base := flags.String("base", "", "compare with the measurements in `FILE`")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: goals [-base FILE] FILE [ROW]")
	}
	if flags.Parse(args) != nil {
		return exitMissing
	}
	if n := flags.NArg(); n < 1 || n > 2 {
		flags.Usage()
		return exitMissing
	}
	pattern, err := regexp.Compile(flags.Arg(1))
	var rows, before map[string]row
	if err == nil {
		rows, err = readFile(flags.Arg(0))
	}
	if err == nil && *base != "" {
		before, err = readFile(*base)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "goals:", err)
		return exitMissing
	case *base != "":
		return compare(stdout, pattern, before, rows)
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

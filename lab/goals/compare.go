package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// compare prints the medians before and after and their ratio, for the time of
// each variant of the rows that match and for any other figure that has
// changed. It returns exitMissing if nothing was measured in both.
func compare(w io.Writer, pattern *regexp.Regexp, before, after map[string]row) int {
	lines := 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\tvariant\tunit\tbase\tnow\tnow/base\t")
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !pattern.MatchString(name) {
			continue
		}
		for _, key := range slices.SortedFunc(maps.Keys(after[name]), inOrder) {
			old, now := before[name][key], after[name][key]
			if len(old) == 0 {
				continue
			}
			lines++
			if key.unit != "ns/op" && median(old) == median(now) {
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%.4g\t%.4g\t%s\n",
				name, key.variant+key.cores, key.unit, median(old), median(now), change(old, now))
		}
	}
	table.Flush()
	if lines == 0 {
		fmt.Fprintf(w, "no row that matches %q was measured in both\n", pattern)
		return exitMissing
	}
	return exitOK
}

// inOrder sorts series by variant, cores and unit.
func inOrder(a, b series) int {
	return cmp.Or(cmp.Compare(a.variant, b.variant), cmp.Compare(a.cores, b.cores), cmp.Compare(a.unit, b.unit))
}

// change returns the ratio of the medians, marked with a ~ if it may be chance:
// a U test at 5 % finds no difference.
func change(old, now []float64) string {
	before, after := median(old), median(now)
	if before == after {
		return "1.000"
	}
	test := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(old, &benchmath.DefaultThresholds), benchmath.NewSample(now, &benchmath.DefaultThresholds))
	mark := ""
	if test.P > test.Alpha {
		mark = " ~"
	}
	return fmt.Sprintf("%.3f%s", after/before, mark)
}

package main

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, output string) map[string]row {
	t.Helper()
	rows, err := readRows(strings.NewReader(output), "bench.txt")
	require.NoError(t, err)
	return rows
}

func TestReadReadsResultLinesAndSkipsTheRest(t *testing.T) {
	rows := read(t, `goos: linux
pkg: github.com/agentstate/state
BenchmarkGoal/get-scalar/baseline
BenchmarkGoal/get-scalar/baseline-2         	 4917093	        12.31 ns/op	       0 B/op	       0 allocs/op
BenchmarkGoal/get-scalar-2cpu/subject-par   	 4917093	        5.5 ns/op
BenchmarkGoal/get-scalar-2cpu/subject-par   	 4917093	        5.7 ns/op
BenchmarkGoal/get-scalar-2cpu/subject-par-2 	 4917093	        2.5 ns/op
BenchmarkGoal/export/n=10-16                	     100	    31000 ns/op	       812.5 bytes/result
BenchmarkGoal/export/subject/n=100-16       	     100	   310000 ns/op	       1e3 bytes/result
BenchmarkOther/get-scalar/baseline-2        	       1	        99 ns/op
PASS
`)
	require.Equal(t, map[string]row{
		"get-scalar": {
			{"baseline", "-2", "ns/op"}: {12.31}, {"baseline", "-2", "B/op"}: {0}, {"baseline", "-2", "allocs/op"}: {0},
		},
		"get-scalar-2cpu": {{"subject-par", "", "ns/op"}: {5.5, 5.7}, {"subject-par", "-2", "ns/op"}: {2.5}},
		"export": {
			{"subject/n=10", "-16", "ns/op"}: {31000}, {"subject/n=10", "-16", "bytes/result"}: {812.5},
			{"subject/n=100", "-16", "ns/op"}: {310000}, {"subject/n=100", "-16", "bytes/result"}: {1000},
		},
	}, rows)
}

func TestReadNamesTheLineItCannotRead(t *testing.T) {
	for _, line := range []string{
		"BenchmarkGoal 10 5 ns/op",
		"BenchmarkGoal/fork-2 10 5 ns/op",
		"BenchmarkGoal/fork/n=10-2 10 fast ns/op",
		"BenchmarkGoal/fork/n=10-2 10 NaN ns/op",
		"BenchmarkGoal/fork/n=10-2 10 5",
	} {
		_, err := readRows(strings.NewReader("PASS\n"+line+"\n"), "bench.txt")
		require.ErrorContains(t, err, "bench.txt:2", line)
	}
}

// times returns a row with measurements of the time of one variant.
func times(variant string, figures ...float64) row {
	return row{{variant, "", "ns/op"}: figures, {variant, "", "allocs/op"}: {0}}
}

func join(parts ...row) row {
	all := row{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

func TestMeasures(t *testing.T) {
	twoSizes := []string{"subject/n=10", "subject/n=1000"}
	onTwoCores := row{{"subject-par", "-2", "ns/op"}: {3}}
	tests := []struct {
		name    string
		measure measure
		row     row
		want    float64
	}{
		{"ratio of medians, an outlier does not count", ratio("subject", "baseline"), join(times("subject", 900, 4, 6), times("baseline", 12, 1, 13)), 0.5},
		{"the median of an even count is the mean of the middle", ratio("subject", "baseline"), join(times("subject", 1, 3, 5, 90), times("baseline", 2)), 2},
		{"difference", difference("subject", "baseline"), join(times("subject", 3), times("baseline", 5)), -2},
		{"second core", secondCore("subject-par"), join(times("subject-par", 4), onTwoCores), 0.75},
		{"worst", worst("ns/op", twoSizes...), join(times("subject/n=10", 90), times("subject/n=1000", 70)), 90},
		{"worst of zeros", worst("allocs/op", "subject"), times("subject", 1), 0},
		{"spread, whichever is slower", spread("ns/op", twoSizes...), join(times("subject/n=10", 90), times("subject/n=1000", 30)), 3},
		{"stride", stride(sizes(10, 1000)...), join(times("subject/n=10", 1), times("subject/n=100", 12), times("subject/n=1000", 60)), 12},
		{"no growth", growth(twoSizes...), join(times("subject/n=10", 90), times("subject/n=1000", 90)), 0},
		{"growth of a root", growth(twoSizes...), join(times("subject/n=10", 10), times("subject/n=1000", 100)), 0.5},
		{"linear growth", growth(sizes(10, 1000)...), join(times("subject/n=10", 7), times("subject/n=100", 70), times("subject/n=1000", 700)), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.InDelta(t, test.want, test.measure(test.row), 1e-9)
		})
	}
}

func TestMeasuresWithoutAMeasurementAreMissing(t *testing.T) {
	tests := map[string]struct {
		measure measure
		row     row
	}{
		"ratio without baseline":      {ratio("subject", "baseline"), times("subject", 1)},
		"ratio without subject":       {ratio("subject", "baseline"), times("baseline", 1)},
		"ratio to nothing":            {ratio("subject", "baseline"), join(times("subject", 1), times("baseline", 0))},
		"difference without baseline": {difference("subject", "baseline"), times("subject", 1)},
		"second core on one only":     {secondCore("subject-par"), times("subject-par", 1)},
		"worst without one size":      {worst("ns/op", sizes(10, 100)...), times("subject/n=10", 1)},
		"worst of another metric":     {worst("bytes/result", "subject"), times("subject", 1)},
		"spread without one size":     {spread("ns/op", sizes(10, 100)...), times("subject/n=10", 1)},
		"stride without one size":     {stride(sizes(10, 100)...), times("subject/n=10", 1)},
		"growth without one size":     {growth(sizes(10, 100)...), times("subject/n=100", 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.measure(test.row)
			require.True(t, math.IsNaN(got) || math.IsInf(got, 0), "%v", got)
		})
	}
}

func TestLimits(t *testing.T) {
	require.True(t, atMost(2, "×").met(2))
	require.False(t, atMost(2, "×").met(2.01))
	require.True(t, atLeast(20, "×").met(20))
	require.False(t, atLeast(20, "×").met(19.9))
	require.False(t, atMost(2, "×").met(math.NaN()))

	require.Equal(t, "≤ 0.5 ×", atMost(0.5, "×").String())
	require.Equal(t, "≥ 300 ×", atLeast(300, "×").String())
	require.Equal(t, "≤ 0.05", atMost(0.05, "").String())

	require.Equal(t, "0 allocs", atMost(0, "allocs").show(0))
	require.Equal(t, "143 ns", atMost(200, "ns").show(143.2))
	require.Equal(t, "23.4 ×", atLeast(20, "×").show(23.42))
	require.Equal(t, "1.50 ×", atMost(2, "×").show(1.5))
	require.Equal(t, "-0.013", atMost(0.05, "").show(-0.0134))
	require.Equal(t, "0.5004 ×", atMost(0.5, "×").show(0.5004), "a missed goal does not look met")
}

func TestReportStatus(t *testing.T) {
	table := []goal{
		{"get", "get / map", atMost(0.5, "×"), ratio("subject", "baseline")},
		{"clone", "clone / fork", atLeast(20, "×"), ratio("baseline", "subject")},
	}
	get := join(times("subject", 4), times("baseline", 10))
	slowGet := join(times("subject", 6), times("baseline", 10))
	clone := join(times("subject", 1), times("baseline", 30))
	tests := []struct {
		name     string
		rows     string
		measured map[string]row
		status   int
		want     string
	}{
		{"all met", "", map[string]row{"get": get, "clone": clone}, exitOK, `
row    what          goal     measured  
get    get / map     ≤ 0.5 ×  0.40 ×    ok
clone  clone / fork  ≥ 20 ×   30.0 ×    ok
`},
		{"one short", "", map[string]row{"get": slowGet, "clone": clone}, exitShort, `
row    what          goal     measured  
get    get / map     ≤ 0.5 ×  0.60 ×    short
clone  clone / fork  ≥ 20 ×   30.0 ×    ok
`},
		{"missing weighs more than short", "", map[string]row{"get": slowGet}, exitMissing, `
row    what          goal     measured  
get    get / map     ≤ 0.5 ×  0.60 ×    short
clone  clone / fork  ≥ 20 ×   -         not measured
`},
		{"short after missing", "", map[string]row{"clone": times("subject", 1), "get": slowGet}, exitMissing, `
row    what          goal     measured  
get    get / map     ≤ 0.5 ×  0.60 ×    short
clone  clone / fork  ≥ 20 ×   -         not measured
`},
		{"a row that was not asked for is not missing", "^get$", map[string]row{"get": get}, exitOK, `
row  what       goal     measured  
get  get / map  ≤ 0.5 ×  0.40 ×    ok
`},
		{"no such row", "nothing", map[string]row{"get": get}, exitMissing, `
row  what  goal  measured  
no row matches "nothing"
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			status := report(&out, table, regexp.MustCompile(test.rows), test.measured)
			require.Equal(t, strings.TrimPrefix(test.want, "\n"), out.String())
			require.Equal(t, test.status, status)
		})
	}
}

// TestRunMeetsEveryGoal runs the real table over output in which every goal is just met, and without
// any one row.
func TestRunMeetsEveryGoal(t *testing.T) {
	canned, err := os.ReadFile(filepath.Join("testdata", "bench.txt"))
	require.NoError(t, err)

	var out, errs bytes.Buffer
	status := run([]string{filepath.Join("testdata", "bench.txt")}, &out, &errs)
	require.Equal(t, exitOK, status, "%s%s", &out, &errs)
	require.Equal(t, len(goals), strings.Count(out.String(), "ok\n"))

	for _, g := range goals {
		var rest []string
		for line := range strings.Lines(string(canned)) {
			if !strings.HasPrefix(line, "BenchmarkGoal/"+g.row+"/") {
				rest = append(rest, line)
			}
		}
		path := filepath.Join(t.TempDir(), "bench.txt")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(rest, "")), 0o600))
		require.Equal(t, exitMissing, run([]string{path}, &out, &errs), "without %s", g.row)
	}
}

func TestRunRefusesWhatItCannotRead(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(bad, []byte("BenchmarkGoal/fork/n=10 1 x ns/op\n"), 0o600))
	for _, args := range [][]string{
		nil, {bad, "fork", "more"}, {filepath.Join("testdata", "bench.txt"), "("}, {bad + ".none"}, {bad},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, exitMissing, run(args, &out, &errs), args)
		require.NotEmpty(t, errs.String(), args)
		require.Empty(t, out.String(), args)
	}
}

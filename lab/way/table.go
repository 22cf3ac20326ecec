package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/lab/way/marks"
)

// figures are what is counted of a trip.
type figures [7]int

// columns are the names of the figures. A change is a call whose predecessor in its
// goroutine is in another file, or in another package.
var columns = [len(figures{})]string{
	"calls", "functions", "files", "packages", "changes of file", "changes of package", "goroutines",
}

// count returns the figures of a trip.
func count(calls []marks.Call) figures {
	functions, files, packages, last := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	changesOfFile, changesOfPackage := 0, 0
	for _, c := range calls {
		file, before := c.File(), last[c.Goroutine]
		functions[c.Function], files[file], packages[path.Dir(file)] = true, true, true
		if before != "" && before != file {
			changesOfFile++
		}
		if before != "" && path.Dir(before) != path.Dir(file) {
			changesOfPackage++
		}
		last[c.Goroutine] = file
	}
	return figures{len(calls), len(functions), len(files), len(packages), changesOfFile, changesOfPackage, len(last)}
}

// table has the figures of trips, in the order of the trips.
type table struct {
	trips  []string
	counts map[string]figures
}

func (t *table) add(trip string, f figures) {
	if t.counts == nil {
		t.counts = map[string]figures{}
	}
	t.trips = append(t.trips, trip)
	t.counts[trip] = f
}

// newTable counts the calls of trips: first those of functions that have names, and
// then, in further rows, all of them.
func newTable(trips []trip) *table {
	t := &table{}
	for _, literals := range []bool{false, true} {
		for _, trip := range trips {
			calls, name := trip.Calls, trip.Name+withLiterals
			if !literals {
				calls, name = slices.DeleteFunc(slices.Clone(calls), marks.Call.IsLiteral), trip.Name
			}
			t.add(name, count(calls))
		}
	}
	return t
}

const withLiterals = ", with literals"

// String returns the table in Markdown.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| trip | %s |\n|---|%s\n", strings.Join(columns[:], " | "), strings.Repeat("---|", len(columns)))
	for _, name := range t.trips {
		fmt.Fprintf(&b, "| %s |", name)
		for _, n := range t.counts[name] {
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parseTable reads a text with a table that String has written.
func parseTable(text string) (*table, error) {
	t := &table{}
	for number, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| trip |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		var f figures
		if len(cells) != len(f)+1 {
			return nil, fmt.Errorf("line %d has %d cells, want %d", number+1, len(cells), len(f)+1)
		}
		for i, cell := range cells[1:] {
			n, err := strconv.Atoi(strings.TrimSpace(cell))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
			f[i] = n
		}
		t.add(strings.TrimSpace(cells[0]), f)
	}
	return t, nil
}

// tolerance is the percentage by which a figure may grow. Figures differ by up to
// half a percent between runs, also on a busy machine, because goroutines interleave
// and because package persist hashes with a random seed. A figure below 50 must not
// grow at all.
const tolerance = 2

// compare returns an error that names each figure that is larger than in a fixed
// table, and each trip that only one of the tables has. shorter has the figures that
// are smaller.
func (t *table) compare(fixed *table) (shorter []string, err error) {
	var errs []error
	for _, name := range fixed.trips {
		now, made := t.counts[name]
		if !made {
			errs = append(errs, fmt.Errorf("%s: is not made any more", name))
			continue
		}
		for i, was := range fixed.counts[name] {
			change := fmt.Sprintf("%s: %s %d, %d before", name, columns[i], now[i], was)
			switch room := was * tolerance / 100; {
			case now[i] > was+room:
				errs = append(errs, errors.New(change))
			case now[i] < was-room:
				shorter = append(shorter, change)
			}
		}
	}
	for _, name := range t.trips {
		if _, known := fixed.counts[name]; !known {
			errs = append(errs, fmt.Errorf("%s: is new", name))
		}
	}
	return shorter, errors.Join(errs...)
}

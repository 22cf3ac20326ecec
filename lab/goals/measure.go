package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// A series identifies measurements that differ only by chance.
type series struct {
	variant string // such as baseline or subject/n=10
	cores   string // such as -2, as go test appends it to the name, or empty for 1
	unit    string
}

// A row holds the measurements of the benchmarks BenchmarkGoal/<row>/….
type row map[series][]float64

// readRows reads the output of go test -bench and returns the rows by name. It
// ignores benchmarks that are not below BenchmarkGoal. A variant that is only a
// size belongs to the subject: n=10 is subject/n=10.
func readRows(r io.Reader, file string) (map[string]row, error) {
	rows := map[string]row{}
	lines := benchfmt.NewReader(r, file)
	for lines.Scan() {
		var result *benchfmt.Result
		switch record := lines.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			result = record
		}
		if result == nil || string(result.Name.Base()) != "Goal" {
			continue
		}
		_, parts := result.Name.Parts()
		name, cores := strings.TrimPrefix(string(result.Name), "Goal/"), ""
		if n := len(parts); n > 0 && parts[n-1][0] == '-' {
			cores = string(parts[n-1])
			name = strings.TrimSuffix(name, cores)
		}
		name, variant, found := strings.Cut(name, "/")
		_, line := result.Pos()
		if !found {
			return nil, fmt.Errorf("%s:%d: %q has no variant", file, line, result.Name)
		}
		if strings.HasPrefix(variant, "n=") {
			variant = "subject/" + variant
		}
		if rows[name] == nil {
			rows[name] = row{}
		}
		for _, value := range result.Values {
			figure, unit := value.Value, value.Unit
			if value.OrigUnit != "" { // the goals are in the units of go test: ns, not sec
				figure, unit = value.OrigValue, value.OrigUnit
			}
			if math.IsNaN(figure) || math.IsInf(figure, 0) {
				return nil, fmt.Errorf("%s:%d: %v %s is not a measurement", file, line, figure, unit)
			}
			key := series{variant, cores, unit}
			rows[name][key] = append(rows[name][key], figure)
		}
	}
	return rows, lines.Err()
}

// median returns the middle figure of a variant on any number of cores, NaN if
// there is none.
func (r row) median(variant, unit string) float64 {
	var all []float64
	for key, figures := range r {
		if key.variant == variant && key.unit == unit {
			all = append(all, figures...)
		}
	}
	return median(all)
}

func (r row) medians(unit string, variants []string) []float64 {
	figures := make([]float64, len(variants))
	for i, variant := range variants {
		figures[i] = r.median(variant, unit)
	}
	return figures
}

func median(figures []float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// A measure computes the figure of a goal. Where a measurement is missing, the
// figure is NaN or infinite.
type measure func(row) float64

// ratio is the time of one variant in units of another's.
func ratio(of, unit string) measure {
	return func(r row) float64 { return r.median(of, "ns/op") / r.median(unit, "ns/op") }
}

// worstRatio is the largest ratio of the times of two variants at one of the
// sizes.
func worstRatio(of, unit string, sizes ...int) measure {
	return func(r row) float64 {
		largest := 0.0
		for _, n := range sizes {
			size := "/n=" + strconv.Itoa(n)
			largest = max(largest, ratio(of+size, unit+size)(r))
		}
		return largest
	}
}

// difference is the time that one variant takes more than another.
func difference(of, than string) measure {
	return func(r row) float64 { return r.median(of, "ns/op") - r.median(than, "ns/op") }
}

// secondCore is the time of a parallel variant with two cores in units of its
// time with one.
func secondCore(variant string) measure {
	return func(r row) float64 {
		return median(r[series{variant, "-2", "ns/op"}]) / median(r[series{variant, "", "ns/op"}])
	}
}

// worst is the largest figure of the variants.
func worst(unit string, variants ...string) measure {
	return func(r row) float64 { return slices.Max(r.medians(unit, variants)) }
}

// spread is the largest figure of the variants in units of the smallest.
func spread(unit string, variants ...string) measure {
	return func(r row) float64 {
		figures := r.medians(unit, variants)
		return slices.Max(figures) / slices.Min(figures)
	}
}

// stride is the largest factor between the times of one size and of the next.
func stride(variants ...string) measure {
	return func(r row) float64 {
		figures := r.medians("ns/op", variants)
		largest := 0.0
		for i := 1; i < len(figures); i++ {
			largest = max(largest, figures[i]/figures[i-1])
		}
		return largest
	}
}

// growth is the exponent e of time ~ n^e, fitted by least squares to the
// variants …n=<n>. It is 0 for a cost that does not depend on n and 1 for a
// linear one.
func growth(variants ...string) measure {
	return func(r row) float64 {
		var sumX, sumY, sumXX, sumXY float64
		for i, figure := range r.medians("ns/op", variants) {
			_, size, _ := strings.Cut(variants[i], "n=")
			n, err := strconv.ParseFloat(size, 64)
			if err != nil {
				return math.NaN()
			}
			x, y := math.Log(n), math.Log(figure)
			sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
		}
		count := float64(len(variants))
		return (count*sumXY - sumX*sumY) / (count*sumXX - sumX*sumX)
	}
}

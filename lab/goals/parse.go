package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A sample is one result line of go test -bench.
type sample struct {
	variant string // "baseline", "subject/n=10"
	cores   int    // GOMAXPROCS
	metrics map[string]float64
}

type samples []sample

// measurements holds the samples of each row.
type measurements map[string]samples

func (m measurements) row(name string) samples { return m[name] }

// go test appends -GOMAXPROCS to a benchmark's name unless it is 1.
var coresSuffix = regexp.MustCompile(`-(\d+)$`)

// parse reads the lines "BenchmarkGoal/<row>/<variant>-<cores> <runs> <figure> <unit> …" and skips all others.
// A variant that is only a size belongs to the subject: n=10 is subject/n=10.
func parse(r io.Reader) (measurements, error) {
	measured := measurements{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		name, found := strings.CutPrefix(words[0], "BenchmarkGoal/")
		if !found || len(words) == 1 {
			continue
		}
		s := sample{cores: 1, metrics: map[string]float64{}}
		if suffix := coresSuffix.FindStringSubmatch(name); suffix != nil {
			cores, err := strconv.Atoi(suffix[1])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			s.cores, name = cores, strings.TrimSuffix(name, suffix[0])
		}
		row, variant, found := strings.Cut(name, "/")
		if !found {
			return nil, fmt.Errorf("line %d: %q has no variant", number, name)
		}
		if strings.HasPrefix(variant, "n=") {
			variant = "subject/" + variant
		}
		s.variant = variant
		if len(words)%2 != 0 {
			return nil, fmt.Errorf("line %d: a figure without its unit", number)
		}
		for i := 2; i < len(words); i += 2 {
			figure, err := strconv.ParseFloat(words[i], 64)
			if err != nil || math.IsNaN(figure) || math.IsInf(figure, 0) {
				return nil, fmt.Errorf("line %d: %q is no figure", number, words[i])
			}
			s.metrics[words[i+1]] = figure
		}
		measured[row] = append(measured[row], s)
	}
	return measured, lines.Err()
}

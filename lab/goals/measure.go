package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A measure computes the figure of a goal from the samples of its row. It is false when a sample
// that the figure needs is missing.
type measure func(samples) (float64, bool)

// ratio is the time of one variant in units of another's.
func ratio(of, unit string) measure {
	return func(s samples) (float64, bool) {
		a, okA := s.median(of, "ns/op")
		b, okB := s.median(unit, "ns/op")
		return a / b, okA && okB && b > 0
	}
}

// difference is the time that one variant takes more than another.
func difference(of, than string) measure {
	return func(s samples) (float64, bool) {
		a, okA := s.median(of, "ns/op")
		b, okB := s.median(than, "ns/op")
		return a - b, okA && okB
	}
}

// secondCore is the time of a parallel variant with two cores in units of its time with one.
func secondCore(variant string) measure {
	return func(s samples) (float64, bool) {
		one, okOne := s.onCores(1).median(variant, "ns/op")
		two, okTwo := s.onCores(2).median(variant, "ns/op")
		return two / one, okOne && okTwo && one > 0
	}
}

// worst is the largest figure of the variants.
func worst(metric string, variants ...string) measure {
	return func(s samples) (float64, bool) {
		figures, ok := s.medians(metric, variants)
		if !ok {
			return 0, false
		}
		return slices.Max(figures), true
	}
}

// spread is the largest figure of the variants in units of the smallest.
func spread(metric string, variants ...string) measure {
	return func(s samples) (float64, bool) {
		figures, ok := s.medians(metric, variants)
		if !ok || slices.Min(figures) <= 0 {
			return 0, false
		}
		return slices.Max(figures) / slices.Min(figures), true
	}
}

// stride is the largest factor between the times of one size and of the next.
func stride(variants ...string) measure {
	return func(s samples) (float64, bool) {
		figures, ok := s.medians("ns/op", variants)
		if !ok || slices.Min(figures) <= 0 {
			return 0, false
		}
		largest := 0.0
		for i := 1; i < len(figures); i++ {
			largest = max(largest, figures[i]/figures[i-1])
		}
		return largest, true
	}
}

// growth is the exponent e of time ~ n^e, fitted by least squares to the variants …n=<n>.
// It is 0 for a cost that does not depend on n and 1 for a linear one.
func growth(variants ...string) measure {
	return func(s samples) (float64, bool) {
		figures, ok := s.medians("ns/op", variants)
		if !ok || slices.Min(figures) <= 0 {
			return 0, false
		}
		var sumX, sumY, sumXX, sumXY float64
		for i, variant := range variants {
			_, size, _ := strings.Cut(variant, "n=")
			n, err := strconv.ParseFloat(size, 64)
			if err != nil {
				return 0, false
			}
			x, y := math.Log(n), math.Log(figures[i])
			sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
		}
		count := float64(len(variants))
		return (count*sumXY - sumX*sumY) / (count*sumXX - sumX*sumX), true
	}
}

// median is the middle figure of a variant over all its samples.
func (s samples) median(variant, metric string) (float64, bool) {
	var figures []float64
	for _, sample := range s {
		if figure, ok := sample.metrics[metric]; ok && sample.variant == variant {
			figures = append(figures, figure)
		}
	}
	if len(figures) == 0 {
		return 0, false
	}
	slices.Sort(figures)
	half := len(figures) / 2
	if len(figures)%2 == 1 {
		return figures[half], true
	}
	return (figures[half-1] + figures[half]) / 2, true
}

// medians are the medians of several variants; false when one is missing.
func (s samples) medians(metric string, variants []string) ([]float64, bool) {
	var figures []float64
	for _, variant := range variants {
		figure, ok := s.median(variant, metric)
		if !ok {
			return nil, false
		}
		figures = append(figures, figure)
	}
	return figures, len(figures) > 0
}

func (s samples) onCores(cores int) samples {
	var on samples
	for _, sample := range s {
		if sample.cores == cores {
			on = append(on, sample)
		}
	}
	return on
}

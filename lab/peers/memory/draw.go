package main

import (
	"fmt"
	"strings"
	"testing"
)

// draw returns bars of the times, on one scale for each operation.
func draw(rows []row) string {
	const width, left, bar, gap = 760, 240, 18, 6
	operations := []struct {
		name string
		of   func(row) testing.BenchmarkResult
	}{
		{"set and get a number", func(r row) testing.BenchmarkResult { return r.number }},
		{"add to a list of 1 000", func(r row) testing.BenchmarkResult { return r.add }},
		{"read a list of 1 000", func(r row) testing.BenchmarkResult { return r.read }},
	}
	var out strings.Builder
	y := 10
	for _, operation := range operations {
		longest := 0.0
		for _, r := range rows {
			longest = max(longest, perOperation(operation.of(r)))
		}
		y += 20
		fmt.Fprintf(&out, "<text x=\"10\" y=\"%d\" class=\"t\">%s</text>\n", y, operation.name)
		y += gap
		for _, r := range rows {
			b := operation.of(r)
			length := int((width - left - 90) * perOperation(b) / longest)
			fmt.Fprintf(&out, "<text x=\"%d\" y=\"%d\" class=\"n\">%s</text><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
				left-8, y+bar-4, r.name, left, y, max(length, 1), bar, left+max(length, 1)+6, y+bar-4, duration(b))
			y += bar + gap
		}
		y += 10
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" role=\"img\" "+
		"aria-label=\"Times of three operations on a State, a map, and the states of eino and Genkit\">\n"+
		"<style>svg{background:#fff}text{fill:#57606a}.t{fill:#1f2328;font-size:15px}.n{text-anchor:end}rect{fill:#0969da}</style>\n%s</svg>\n",
		width, y, out.String())
}

func perOperation(b testing.BenchmarkResult) float64 { return float64(b.T) / float64(b.N) }

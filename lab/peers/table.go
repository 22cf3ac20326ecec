package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// writeTable writes the rows as a table of Markdown.
func writeTable(w io.Writer, rows []row) error {
	lines := []string{
		"| engine | users | contender | messages/s | p50 ms | p99 ms | bytes written | round trips | bytes sent |",
		"|---|---|---|---|---|---|---|---|---|",
	}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("| %s | %d | %s | %.0f | %s | %s | %s | %s | %s |",
			r.engine, r.users, r.contender, r.rate(), milliseconds(r.quantile(0.5)), milliseconds(r.quantile(0.99)),
			count(r.bytes(), 0), count(r.trips, 1), count(r.sent, 0)))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// writeValues writes what ours asks of its stores as a table of Markdown.
func writeValues(w io.Writer, asked []values) error {
	lines := []string{"| engine | users | reads | writes | bytes of values written |", "|---|---|---|---|---|"}
	for _, v := range asked {
		lines = append(lines, fmt.Sprintf("| %s | %d | %.2f | %.2f | %.0f |", v.engine, v.users, v.reads, v.writes, v.bytes))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func count(n float64, digits int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, n)
}

package html

import (
	"fmt"
	"strconv"
	"time"
)

// formatBytes returns a size for people, such as 1.4 KiB.
func formatBytes(n int) string {
	switch {
	case n < 1<<10:
		return strconv.Itoa(n) + " B"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// formatCount returns a number with its noun, such as "3 messages".
func formatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// formatSpan returns a duration for people, such as "12 s" or "3 h 20 min".
func formatSpan(d time.Duration) string {
	switch s := int64(d / time.Second); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%d days", s/86400)
	}
}

// formatAgo returns how long ago something was, such as "8 min ago". The script
// of the pages says the same later.
func formatAgo(d time.Duration) string {
	switch s := int64(max(0, d) / time.Second); {
	case s < 120:
		return fmt.Sprintf("%d s ago", s)
	case s < 2*3600:
		return fmt.Sprintf("%d min ago", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%d h ago", s/3600)
	default:
		return fmt.Sprintf("%d days ago", s/86400)
	}
}

// formatTook returns the duration of a short piece of work, such as "1.2 s".
func formatTook(d time.Duration) string {
	if d >= time.Second && d < 2*time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return formatSpan(d)
}

package fault

import "strings"

// listedNames is the most names that an error lists.
const listedNames = 8

// Suggest returns the end of an error about an unknown name: the known name
// that is probably meant, or else all known names if they are few.
func Suggest(name string, known []string) string {
	best, least := "", 3 // mistakes
	for _, k := range known {
		if n := distance(fold(name), fold(k)); n < least && n*3 < len(k)+2 {
			best, least = k, n
		}
	}
	switch {
	case best != "":
		return "; did you mean " + Quote(best) + "?"
	case len(known) == 0 || len(known) > listedNames:
		return ""
	}
	if len(known) == 1 {
		return "; there is " + Quote(known[0])
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = Quote(k)
	}
	return "; there are " + strings.Join(list, ", ")
}

// fold removes what is often different in names that mean the same.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(Clip(name)))
}

// distance returns the number of bytes to insert, delete or replace between two
// names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

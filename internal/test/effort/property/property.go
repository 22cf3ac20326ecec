// Package property is rapid.Check with a number of cases that STATE_EFFORT
// multiplies. Only tests import it.
package property

import (
	"flag"
	"strconv"

	"github.com/agentstate/state/internal/test/effort"
	"pgregory.net/rapid"
)

// Before the flags of the command line are parsed, so that -rapid.checks still
// has the last word.
func init() {
	set("rapid.checks", strconv.Itoa(max(50, effort.Runs(50))))
	set("rapid.seed", strconv.FormatUint(effort.Draw(0), 10)) // with 0, a random one
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

// Check fails t with the smallest case that it finds for which holds fails. It
// tries 50 cases, multiplied by a STATE_EFFORT above 1, and a fifth of them with -short.
func Check(t rapid.TB, holds func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, holds)
}

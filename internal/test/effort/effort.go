// Package effort holds the two numbers that all random tests of the repository
// share: how many cases they try, and with which seed they begin. It also says
// which tests run only on request. Only tests import it.
//
// STATE_EFFORT is a factor on the number of cases of every random test:
// programs, histories, schedules, killed and stopped processes, and the checks
// of package rapid. The default, 0.25, is for go test ./... on a laptop, and
// leaves out tests that take long. CI sets 1 and more.
//
// STATE_SEED is the number from which the cases are made. A random test that
// fails prints it, so that the cases of its run can be made again. Without it,
// tests of laws make the same cases each time, and others make theirs from
// STATE_DRAW, or from a random number. CI makes STATE_DRAW of the commit.
package effort

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

var factor = readFactor()

// Runs returns the number of cases that a random test tries: base, multiplied
// by STATE_EFFORT, and at least 1.
func Runs(base int) int { return max(1, int(math.Round(float64(base)*factor))) }

// Seed returns STATE_SEED, or usual if it is not set.
func Seed(usual uint64) uint64 { return readSeed("STATE_SEED", usual) }

// Draw returns STATE_SEED or STATE_DRAW, or usual if neither is set.
func Draw(usual uint64) uint64 { return Seed(readSeed("STATE_DRAW", usual)) }

func readSeed(name string, usual uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("effort: %s=%q is not a number of 64 bits", name, text))
	}
	return seed
}

// Cost skips a test of what something costs, in time, calls or memory, unless
// STATE_COST is 1. Such tests are in files named *_cost_test.go and take as
// long as all others together. CI runs them once, without the race detector.
func Cost(t testing.TB) {
	t.Helper()
	if text := os.Getenv("STATE_COST"); text == "" {
		t.Skip("measures what something costs and takes long: STATE_COST=1 runs it")
	} else if text != "1" {
		t.Fatalf("STATE_COST=%q is not 1", text)
	}
}

// SkipShort skips a test that takes long and has one goroutine, because it measures
// sizes, or tries every case of something: with -short, which CI sets under the race
// detector, and unless STATE_EFFORT is 1 or more.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() || factor < 1 {
		t.Skip("takes long: STATE_EFFORT=1 without -short runs it")
	}
}

// LogSeed returns Draw, or a random number if that is not set, and logs it.
func LogSeed(t testing.TB) uint64 {
	t.Helper()
	seed := Draw(rand.Uint64())
	t.Logf("STATE_SEED=%d", seed)
	return seed
}

func readFactor() float64 {
	text := os.Getenv("STATE_EFFORT")
	if text == "" {
		return 0.25
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1e6) {
		panic(fmt.Sprintf("effort: STATE_EFFORT=%q is not a factor from 0 to 1000000", text))
	}
	return n
}

// Package effort holds the two numbers that all random tests of the repository
// share: how many cases they try, and with which seed they begin. Only tests
// import it.
//
// STATE_EFFORT is a factor on the number of cases of every random test:
// programs, histories, schedules, killed and stopped processes, and the checks
// of package rapid. The default, 1, is for go test ./... on a laptop. CI sets a
// larger one.
//
// STATE_SEED makes the cases of an earlier run again. A random test that fails
// prints it.
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

// Seed returns STATE_SEED. If it is not set, Seed returns usual and false.
func Seed(usual uint64) (seed uint64, set bool) {
	text := os.Getenv("STATE_SEED")
	if text == "" {
		return usual, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("effort: STATE_SEED=%q is not a number of 64 bits", text))
	}
	return seed, true
}

// LogSeed returns STATE_SEED, or a random number if it is not set, and logs it.
func LogSeed(t testing.TB) uint64 {
	t.Helper()
	seed, _ := Seed(rand.Uint64())
	t.Logf("STATE_SEED=%d", seed)
	return seed
}

func readFactor() float64 {
	text := os.Getenv("STATE_EFFORT")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1e6) {
		panic(fmt.Sprintf("effort: STATE_EFFORT=%q is not a factor from 0 to 1000000", text))
	}
	return n
}

package kit

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Watchdog is the real time that a bubble may take.
var Watchdog = 20 * time.Second

// InBubble runs play in a bubble of synctest. It returns what is wrong with its
// end: goroutines that are left or wait for each other, or a panic. A play that
// hangs is left to itself: a goroutine waits for a lock or for something that is
// not in the bubble, so that no fake time passes.
func InBubble(t *testing.T, play func(t *testing.T)) (problem string, hangs bool) {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		bubble, left, ended := "", "the case has not ended", false
		defer func() { done <- left }()
		defer func() {
			switch e := recover(); {
			case e == nil:
			case !strings.Contains(fmt.Sprint(e), "deadlock") || bubble == "":
				left = fmt.Sprint("panic: ", e)
			case ended:
				left = goroutinesLeft(bubble)
			default:
				left = "all goroutines wait for each other"
			}
		}()
		defer func() { left = "" }() // also after FailNow
		synctest.Test(t, func(t *testing.T) {
			bubble = bubbleOf()
			defer func() { ended = true }()
			play(t)
		})
	}()
	timer := time.NewTimer(Watchdog)
	defer timer.Stop()
	select {
	case left := <-done:
		return left, false
	case <-timer.C:
		return fmt.Sprintf("time stands still: after %v a goroutine waits for something outside the bubble, or for a lock\n%s",
			Watchdog, allStacks()), true
	}
}

func allStacks() string {
	stacks := make([]byte, 1<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}

var bubbleName = regexp.MustCompile(`synctest bubble \d+`)

// bubbleOf returns the name of the bubble of the goroutine.
func bubbleOf() string {
	head := make([]byte, 128)
	return bubbleName.FindString(string(head[:runtime.Stack(head, false)]))
}

// leftGoroutine is the stack of a goroutine of a bubble: what it does, and which
// function began it.
var leftGoroutine = regexp.MustCompile(`(?s)^goroutine \d+ \[([^\],(]+?) ?[\],(].*\ncreated by (.+) in goroutine`)

// goroutinesLeft describes the goroutines that a case has left.
func goroutinesLeft(bubble string) string {
	var left []string
	for _, stack := range strings.Split(allStacks(), "\n\n") {
		head, frames, _ := strings.Cut(stack, "\n")
		m := leftGoroutine.FindStringSubmatch(stack)
		if m != nil && (strings.Contains(head, bubble+"]") || strings.Contains(head, bubble+",")) &&
			!strings.Contains(frames, "synctest.Run(") {
			left = append(left, m[2]+", "+m[1])
		}
	}
	return Count(len(left), "goroutine is", "goroutines are") + " left:\n      " + strings.Join(left, "\n      ")
}

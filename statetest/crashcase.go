package statetest

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// crashCase is one case of a Crash, and then what has come of it.
type crashCase struct {
	c    *Crash
	plan []planned
	w    *world

	failed, hung bool
	findings     []string
	end          *ending // nil if the case has not come to its end
	keep         int     // Options.Messages
	excused      bool
	reached      []point
	met          []int
	metFaults    int

	// With saving, what was stored after each write, and the name of a secret
	// with a value in a store that is not sealed.
	saving   bool
	saves    []*saved
	unsealed string
}

func (c *Crash) newCase(plan []planned) *crashCase {
	return &crashCase{c: c, plan: plan, w: newWorld(c.Results, plan)}
}

// fail adds findings.
func (k *crashCase) fail(findings ...string) {
	k.findings = append(k.findings, findings...)
	k.failed = k.failed || len(findings) > 0
}

// text returns the findings and the timeline of the case.
func (k *crashCase) text() string {
	text := strings.Join(k.findings, "\n    ")
	if k.hung {
		return text
	}
	return k.w.secrets.mask(text + k.w.timelineText())
}

// runInBubble runs the case. A case that hangs is left to itself.
func (k *crashCase) runInBubble(t *testing.T) {
	t.Helper()
	// What a case that hangs goes on to do must not be seen any more.
	inside := *k
	done := make(chan string, 1)
	go func() {
		bubble, left := "", "the case has not ended"
		defer func() { done <- left }()
		defer func() {
			if e := recover(); e != nil {
				left = goroutinesLeft(fmt.Sprint(e), bubble)
			}
		}()
		defer func() { left = "" }() // FailNow, of Check
		synctest.Test(t, func(t *testing.T) {
			bubble = bubbleOf()
			inside.play(t)
		})
	}()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case left := <-done:
		*k = inside
		if left != "" {
			k.fail(left)
		}
	case <-timer.C:
		k.hung = true
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		k.fail(fmt.Sprintf("time stands still: after %v a goroutine waits for something outside the bubble, or for a lock\n%s", watchdog, stacks))
		return
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.reached, k.met, k.metFaults = k.w.reached, k.w.met, len(k.w.met)
	if k.w.findings != nil {
		k.findings = append(k.w.findings, k.findings...)
		k.failed = true
	}
}

var bubbleName = regexp.MustCompile(`synctest bubble \d+`)

// bubbleOf returns the name of the bubble of the goroutine.
func bubbleOf() string {
	head := make([]byte, 128)
	return bubbleName.FindString(string(head[:runtime.Stack(head, false)]))
}

// goroutinesLeft describes the goroutines that a case has left.
func goroutinesLeft(problem, bubble string) string {
	if !strings.Contains(problem, "deadlock") || bubble == "" {
		return "panic: " + problem
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		head, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(head, bubble+"]") && !strings.Contains(head, bubble+",") || strings.Contains(frames, "synctest.Run(") {
			continue
		}
		left = append(left, describeGoroutine(head, frames))
	}
	return count(len(left), "goroutine is", "goroutines are") + " left:\n      " + strings.Join(left, "\n      ")
}

var goState = regexp.MustCompile(`\[([^\],(]+)`)

// describeGoroutine returns what a goroutine does, and which function began it.
func describeGoroutine(head, frames string) string {
	state := ""
	if m := goState.FindStringSubmatch(head); m != nil {
		state = strings.TrimSpace(m[1])
	}
	_, creator, _ := strings.Cut(frames, "created by ")
	creator, _, _ = strings.Cut(creator, " in goroutine")
	return creator + ", " + state
}

// save keeps what is stored after a write.
func (k *crashCase) save(d *driver, after point) {
	s, err := savedOf(k.w, after.String())
	if err != nil || !s.hasWorkspace() {
		return
	}
	open := ""
	if len(d.opts.Keys) == 0 {
		if v, err := d.observer.View(context.Background(), user); err == nil {
			open = openSecret(&v.Workspace)
		}
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.saves = append(k.saves, s)
	if open != "" {
		k.unsealed = open
	}
}

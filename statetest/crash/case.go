package crash

import (
	"context"
	"strings"
	"testing"

	"github.com/agentstate/state/statetest/internal/kit"
)

// testCase is one case of a Test, and then what has come of it.
type testCase struct {
	c    *Test
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

func (c *Test) newCase(plan []planned) *testCase {
	return &testCase{c: c, plan: plan, w: newWorld(c.Results, plan)}
}

// fail adds findings.
func (k *testCase) fail(findings ...string) {
	k.findings = append(k.findings, findings...)
	k.failed = k.failed || len(findings) > 0
}

// text returns the findings and the timeline of the case.
func (k *testCase) text() string {
	text := strings.Join(k.findings, "\n    ")
	if k.hung {
		return text
	}
	return k.w.secrets.Mask(text + k.w.timelineText())
}

// runInBubble runs the case. A case that hangs is left to itself.
func (k *testCase) runInBubble(t *testing.T) {
	t.Helper()
	inside := *k // what a case that hangs goes on to do must not be seen any more
	left, hangs := kit.InBubble(t, func(t *testing.T) { inside.play(t) })
	if hangs {
		k.hung = true
		k.fail(left)
		return
	}
	*k = inside
	if left != "" {
		k.fail(left)
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.reached, k.met, k.metFaults = k.w.reached, k.w.met, len(k.w.met)
	if k.w.findings != nil {
		k.findings = append(k.w.findings, k.findings...)
		k.failed = true
	}
}

// save keeps what is stored after a write.
func (k *testCase) save(d *driver, after point) {
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

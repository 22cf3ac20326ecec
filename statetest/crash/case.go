package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state/statetest/internal/kit"
)

// testCase is one case of a Test or a file of Resume, and then what has come of
// it.
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

	// With saving, what was stored after each write, and the name of a secret
	// with a value in a store that is not sealed.
	saving   bool
	saves    []*saved
	unsealed string
}

func (c *Test) newCase(plan ...planned) *testCase {
	return &testCase{c: c, plan: plan, w: newWorld(plan)}
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
func (k *testCase) runInBubble(t *testing.T, play func(k *testCase, t *testing.T) error) {
	t.Helper()
	inside := *k // what a case that hangs goes on to do must not be seen any more
	left, hangs := kit.InBubble(t, func(t *testing.T) {
		if err := play(&inside, t); err != nil {
			inside.fail(err.Error())
		}
	})
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
	k.reached, k.met = k.w.reached, k.w.met
	if findings := k.w.findings; findings != nil {
		k.findings = append(findings, k.findings...)
		k.failed = true
	}
}

// play is what a case of a Test does in its bubble.
func (k *testCase) play(t *testing.T) error {
	d := &driver{open: k.c.Open, w: k.w}
	if k.saving {
		d.onWrite = func(after point) { k.save(d, after) }
	}
	defer d.close()
	defer func() { k.keep, k.excused = d.opts.Messages, d.excused }()
	ctx := context.Background()
	if _, err := d.process(); err != nil {
		return fmt.Errorf("function Open: %w", err)
	}
	if k.c.Setup != nil {
		if err := d.observer.Update(ctx, user, k.c.Setup); err != nil {
			return fmt.Errorf("function Setup: %w", err)
		}
	}
	k.w.count(true)
	err := d.deliverAll(k.c.Messages)
	k.w.count(false)
	v, viewErr := d.observer.View(ctx, user)
	if viewErr != nil {
		return fmt.Errorf("the workspace cannot be read: %w", viewErr)
	}
	k.w.secrets.Add(v.State()) // failures name what is in it
	if err != nil {
		return err
	}
	end, err := endingOf(k.w, v, d.opts.Schema)
	if err != nil {
		return err
	}
	k.fail(checkEnd(k.w, v)...)
	if k.c.Check != nil {
		k.c.Check(t, v)
	}
	k.end = end
	return nil
}

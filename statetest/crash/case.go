package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// testCase is one case of a Test or one file of Resume, and then what has come of
// it. It opens the processes and sends the messages, as the platform would from
// which they come.
type testCase struct {
	c         *Test
	w         *world
	processes []*Process
	waits     []<-chan struct{}  // closed when what a process was asked for has ended
	observer  *workspace.Manager // of what is stored; no fault reaches it
	opts      workspace.Options  // of the first process
	openStore func() store.Store // for a process

	hung    bool
	end     *ending // nil if the case has not come to its end
	excused bool    // a run has failed, as it may

	// With saving, what was stored after each write, and the name of a secret
	// with a value in a store that is not sealed.
	saving   bool
	saves    []*saved
	unsealed string
}

func (c *Test) newCase(plan ...planned) *testCase {
	return &testCase{c: c, w: newWorld(plan)}
}

// text returns the findings and the timeline of the case.
func (k *testCase) text() string {
	text := strings.Join(k.w.findings, "\n    ")
	if k.hung {
		return text
	}
	return k.w.secrets.Mask(text + k.w.timelineText())
}

// inBubble runs the case and returns what has come of it. A case that hangs is
// left to itself: what it goes on to do must not be seen any more.
func (k *testCase) inBubble(t *testing.T, play func(k *testCase, t *testing.T) error) *testCase {
	t.Helper()
	left, hangs := kit.InBubble(t, func(t *testing.T) {
		k.openStore = k.c.openStore(t)
		k.w.db = k.openStore()
		if err := play(k, t); err != nil {
			k.w.fail(err.Error())
		}
	})
	seen := k
	if hangs {
		seen = &testCase{c: k.c, w: newWorld(nil), hung: true}
	}
	if left != "" {
		seen.w.fail(left)
	}
	return seen
}

// play is what a case of a Test does in its bubble.
func (k *testCase) play(t *testing.T) error {
	defer k.close()
	ctx := context.Background()
	if _, err := k.process(); err != nil {
		return fmt.Errorf("function Open: %w", err)
	}
	if k.c.Setup != nil {
		if err := k.observer.Update(ctx, user, k.c.Setup); err != nil {
			return fmt.Errorf("function Setup: %w", err)
		}
	}
	k.w.count(true)
	replies, err := k.deliverAll()
	k.w.count(false)
	v, viewErr := k.observer.View(ctx, user)
	if viewErr != nil {
		return fmt.Errorf("the workspace cannot be read: %w", viewErr)
	}
	k.w.secrets.Add(v.State()) // failures name what is in it
	if err != nil {
		return err
	}
	if k.end, err = endingOf(k.w, v, k.opts.Schema); err != nil {
		return err
	}
	k.end.replies = replies
	k.w.fail(checkEnd(k.w, v)...)
	if k.c.Check != nil {
		k.c.Check(t, v)
	}
	return nil
}

// deliverAll sends the messages, and then each once more. It returns their
// replies.
func (k *testCase) deliverAll() (replies []string, err error) {
	for _, msg := range k.c.Messages {
		if err := k.deliver(msg); err != nil {
			return nil, err
		}
	}
	return k.repeat(k.c.Messages)
}

func (k *testCase) failed() bool { return len(k.w.findings) > 0 }

package crash

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/workspace"
)

// Resume requires that the program goes on with what earlier versions of it have
// stored. The files that match pattern were written by [Test].Save for each
// released version, as v1.2/write_4.json, and are never rewritten. It is a test
// of replay that does not ask for deterministic code.
//
// Each file is a subtest in a bubble of [testing/synctest]. The processes that
// open makes must read the workspace in it, without an unknown field, and verify
// it. They take over and finish the run that was under way, and make none of its
// effects again. Then they handle the messages, and the provider of each Model
// must accept the conversation. Other stores are empty.
//
// The messages need IDs that the files do not have. Replies of Models may be left,
// because each file goes on from another point. A pattern that matches no file is
// a failure.
func Resume(t *testing.T, pattern string, open func(p *Process) *workspace.Options, messages ...workspace.Message) {
	t.Helper()
	if open == nil {
		t.Fatal("crash: Resume: no function")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatalf("crash: Resume: %v", err)
	}
	if len(files) == 0 {
		t.Errorf("crash: Resume: no file matches %s: Test.Save writes them on update", pattern)
		return
	}
	if err := checkMessages(messages); err != nil {
		t.Fatalf("crash: Resume: %v", err)
	}
	for _, file := range files {
		version := filepath.Base(filepath.Dir(file))
		label := version + "-" + filepath.Base(file)
		t.Run(strings.TrimSuffix(label, ".json"), func(t *testing.T) {
			t.Helper()
			s, err := readSaved(file)
			if err != nil {
				t.Errorf("crash: Resume: %v", err)
				return
			}
			k := (&Test{Open: open, Messages: messages}).newCase().
				inBubble(t, func(k *testCase, _ *testing.T) error { return k.resume(s, version) })
			if k.failed() {
				t.Errorf("%s: %s\n    again: %s", label, k.text(), kit.Again(t.Name()))
			}
		})
	}
}

// resume is what a file of [Resume] does in its bubble.
func (k *testCase) resume(s *saved, version string) error {
	defer k.close()
	if err := s.restore(k.w, version); err != nil {
		return fmt.Errorf("it cannot be restored: %w", err)
	}
	p, err := k.process()
	if err != nil {
		return fmt.Errorf("function Open: %w", err)
	}
	if err := k.read(version); err != nil {
		return err
	}
	k.w.count(true) // points have numbers, and no fault is planned
	defer k.w.count(false)
	if err := k.takeOver(p); err != nil {
		return err
	}
	if k.w.fail(s.madeAgain(k.w, version)...); k.failed() {
		return nil
	}
	v, err := k.observer.View(context.Background(), user)
	for _, msg := range k.c.Messages {
		if err != nil {
			break
		}
		before := v.Version
		if err := k.deliver(msg); err != nil {
			return err
		}
		if v, err = k.observer.View(context.Background(), user); err == nil && v.Version == before {
			return fmt.Errorf("message %q was handled by %s: it needs another ID", msg.ID, version)
		}
	}
	if err != nil {
		return fmt.Errorf("the workspace cannot be read in the end: %w", err)
	}
	k.w.secrets.Add(v.State())
	k.w.fail(checkEnd(k.w, v)...)
	return nil
}

// read returns why the workspace cannot be resumed.
func (k *testCase) read(version string) error {
	v, err := k.observer.View(context.Background(), user)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %s: each workspace that %s has stored would be unreadable",
			user, reasonOf(err), version)
	}
	k.w.secrets.Add(v.State())
	if isEmpty(v) {
		return errors.New("the file has no workspace")
	}
	if len(v.Unknown) > 0 {
		return fmt.Errorf("%s has fields that the schema does not: %s: each workspace that %s has stored would lose the values, unless Field.Was has the former names",
			user, strings.Join(v.Unknown, ", "), version)
	}
	if _, err := k.observer.Verify(context.Background(), user); err != nil {
		return fmt.Errorf("%s is damaged: %s", user, reasonOf(err))
	}
	return nil
}

// reasonOf returns an error without what the failure says anyway.
func reasonOf(err error) string {
	var unfit *state.TypeError
	if errors.As(err, &unfit) {
		err = unfit
	}
	return strings.TrimPrefix(strings.TrimSuffix(err.Error(), "."), "state: ")
}

// takeOver lets processes finish what was under way.
func (k *testCase) takeOver(p *Process) error {
	for range maxSends {
		if err := k.settle(p); err != nil {
			return err
		}
		v, err := k.observer.View(context.Background(), user)
		switch {
		case err != nil:
			return fmt.Errorf("%s cannot be read after the takeover: %s", user, reasonOf(err))
		case len(v.DeadLetters) > 0:
			letter := v.DeadLetters[0]
			return fmt.Errorf("message %q, which was under way, was not handled: %s", letter.Message.ID, letter.Reason)
		case v.Run == nil && len(v.Queue) == 0:
			return nil
		}
		time.Sleep(2 * k.w.ttl)
	}
	return errors.New("the run that was under way is not finished")
}

// madeAgain returns the effects that a run has made before and again. How often
// a run makes equal ones is known from the case of [Test].Save.
func (s *saved) madeAgain(w *world, version string) (findings []string) {
	type inRun struct {
		run string
		what
	}
	of := func(e effect) inRun { return inRun{e.Run, what{e.Name, e.Input}} }
	first, allowed := map[inRun]effect{}, map[inRun]int{}
	for _, e := range w.effects[:len(s.Effects)] {
		first[of(e)] = e
	}
	for _, e := range s.Later {
		allowed[of(e)]++
	}
	for _, e := range w.effects[len(s.Effects):] {
		before, ok := first[of(e)]
		if allowed[of(e)]--; !ok || allowed[of(e)] >= 0 {
			continue
		}
		cause := ""
		if e.Key == "" {
			cause = ": it has no key"
		} else if e.Key != before.Key {
			cause = ": its key has changed"
		}
		findings = append(findings, fmt.Sprintf("effect %s, which %s has made, is made again when the run is taken over%s",
			e.Name, version, cause))
	}
	return findings
}

package crash

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/workspace"
)

// Resume requires that the program goes on with what earlier versions of it have
// stored. The files that match pattern were written by [Save] or [Test].Save for
// each released version, as v1.2-write_4.json or v1.2/write_4.json, and are never
// rewritten. It is a test of replay that does not ask for deterministic code.
//
// Each file is a subtest in a bubble of [testing/synctest]. The processes that
// open makes must read each workspace in it, without an unknown field, and verify
// it. They take over and finish the run that was under way, and make none of its
// effects again. Then they handle the messages for each user, and the provider of
// each Model must accept the conversation. Effects return {"ok":true}, and those
// that were made before with the same key return what they returned then. A
// handler of [Process.Transport] answers such a request anew, without an effect.
// Other stores are empty.
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
		t.Errorf("crash: Resume: no file matches %s: Save, or Test.Save, writes them on update", pattern)
		return
	}
	if err := checkMessages(messages); err != nil {
		t.Fatalf("crash: Resume: %v", err)
	}
	for _, file := range files {
		r := newResumption(file, open, messages)
		t.Run(strings.TrimSuffix(r.label, ".json"), func(t *testing.T) {
			t.Helper()
			r.run(t)
		})
	}
}

// resumption is a file of [Resume] and what comes of it.
type resumption struct {
	file, label string
	version     string // that wrote it
	open        func(p *Process) *workspace.Options
	messages    []workspace.Message
	w           *world
	d           *driver
	findings    []string
}

func newResumption(file string, open func(p *Process) *workspace.Options, messages []workspace.Message) *resumption {
	r := &resumption{file: file, label: filepath.Base(file), open: open, messages: messages, w: newWorld(nil, nil)}
	if at := strings.LastIndex(r.label, "-"); at > 0 {
		r.version = r.label[:at]
		return r
	}
	r.version = filepath.Base(filepath.Dir(file))
	r.label = r.version + "-" + r.label
	return r
}

func (r *resumption) fail(format string, args ...any) {
	r.findings = append(r.findings, fmt.Sprintf(format, args...))
}

// run reports one text: what is found first is mostly the cause of the rest.
func (r *resumption) run(t *testing.T) {
	t.Helper()
	s, err := readSaved(r.file)
	if err == nil && !s.hasWorkspace() {
		err = fmt.Errorf("%s has no workspace", r.file)
	}
	if err != nil {
		t.Errorf("crash: Resume: %v", err)
		return
	}
	if problem, _ := kit.InBubble(t, func(*testing.T) { r.play(s) }); problem != "" {
		t.Errorf("%s: the case hangs: %s\n    %s", r.label, r.w.secrets.Mask(problem), "again: "+kit.Again(t.Name()))
		return
	}
	if findings := slices.Concat(r.findings, r.w.findings); len(findings) > 0 {
		text := r.label + ": " + strings.Join(findings, "\n    ") + r.w.timelineText()
		t.Errorf("%s\n    %s", r.w.secrets.Mask(text), "again: "+kit.Again(t.Name()))
	}
}

// play is what happens in the bubble.
func (r *resumption) play(s *saved) {
	if err := s.restore(r.w); err != nil {
		r.fail("it cannot be restored: %v", err)
		return
	}
	r.d = &driver{open: r.open, w: r.w}
	defer r.d.close()
	p, err := r.d.process()
	if err != nil {
		r.fail("Open: %v", err)
		return
	}
	ctx := context.Background()
	var users []string
	for name, err := range r.d.observer.List(ctx) {
		if err != nil {
			r.fail("the workspaces cannot be listed: %v", err)
			return
		}
		users = append(users, name)
	}
	dead := map[string]int{} // letters of each user before
	for _, name := range users {
		v := r.read(ctx, name)
		if v == nil {
			return
		}
		dead[name] = len(v.DeadLetters)
		r.w.reserve(state.Messages.Or(v.State(), nil))
	}
	r.addMade()
	r.w.count(true) // points have numbers, and no fault is planned
	defer r.w.count(false)
	r.takeOver(ctx, p, users, dead)
	r.checkEffects(s)
	if len(r.findings) > 0 {
		return
	}
	for _, name := range users {
		r.d.other = name
		for _, msg := range r.messages {
			if err := r.handle(ctx, msg); err != nil {
				r.fail("%s: %v", name, err)
				return
			}
		}
		r.checkEnd(ctx, name)
	}
}

// read returns the workspace of a user, nil if it cannot be resumed.
func (r *resumption) read(ctx context.Context, name string) *workspace.View {
	v, err := r.d.observer.View(ctx, name)
	if err != nil {
		r.fail("%s cannot be read: %s. Each workspace that %s has stored would be unreadable.", name, reasonOf(err), r.version)
		return nil
	}
	r.w.secrets.Add(v.State())
	if len(v.Unknown) > 0 {
		r.fail("%s has fields that the schema does not: %s. Was a field renamed? Field.Was has its former names. Each workspace that %s has stored would lose the values.",
			name, strings.Join(v.Unknown, ", "), r.version)
		return nil
	}
	if _, err := r.d.observer.Verify(ctx, name); err != nil {
		r.fail("%s is damaged: %s", name, reasonOf(err))
		return nil
	}
	return v
}

// reasonOf returns an error without what the failure says anyway.
func reasonOf(err error) string {
	var unfit *state.TypeError
	if errors.As(err, &unfit) {
		err = unfit
	}
	text := err.Error()
	for _, prefix := range []string{"workspace: ", "state: ", "import: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.TrimSuffix(text, ".")
}

// takeOver lets processes finish what was under way.
func (r *resumption) takeOver(ctx context.Context, p *Process, users []string, dead map[string]int) {
	left := ""
	for range maxSends {
		if err := r.d.settle(p); err != nil {
			r.fail("%v", err)
			return
		}
		left = ""
		for _, name := range users {
			v, err := r.d.observer.View(ctx, name)
			switch {
			case err != nil:
				r.fail("%s cannot be read after the takeover: %s", name, reasonOf(err))
				return
			case v.Run != nil || len(v.Queue) > 0:
				left = name
			case len(v.DeadLetters) > dead[name]:
				letter := v.DeadLetters[len(v.DeadLetters)-1]
				r.fail("%s: message %q, which was under way, was not handled: %s", name, letter.Message.ID, letter.Reason)
				return
			}
		}
		if left == "" {
			return
		}
		time.Sleep(2 * r.w.ttl)
	}
	r.fail("%s: the run that was under way is not finished", left)
}

// handle sends a message, which must not have been handled before.
func (r *resumption) handle(ctx context.Context, msg workspace.Message) error {
	before, err := r.d.observer.Summary(ctx, r.d.user())
	if err != nil {
		return err
	}
	if err := r.d.deliver(msg); err != nil {
		return err
	}
	after, err := r.d.observer.Summary(ctx, r.d.user())
	if err == nil && after.Version == before.Version {
		err = fmt.Errorf("message %q was handled by %s: it needs another ID", msg.ID, r.version)
	}
	return err
}

// reserve keeps the ids of the calls of a conversation from those of new calls.
func (w *world) reserve(msgs []state.Message) {
	for _, m := range msgs {
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for _, c := range calls.Calls() {
			for _, s := range w.scripts {
				s.Reserve(c.ID)
			}
		}
	}
}

// addMade adds the effects that were made before to the timeline.
func (r *resumption) addMade() {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for i := range r.w.effects {
		e := &r.w.effects[i]
		name := "effect_" + pointName(e.name)
		r.w.numbers[name]++
		e.process, e.at = r.version, fmt.Sprintf("%s_%d", name, r.w.numbers[name])
		r.w.addEffect(*e, "made")
	}
}

// checkEffects looks for effects that a run has made before and again. How often
// a run makes equal ones is known from the case of [Test].Save.
func (r *resumption) checkEffects(s *saved) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	type what struct{ run, name, input string }
	whatOf := func(e effect) what { return what{e.run, e.name, canonical(e.input)} }
	first, allowed := map[what]effect{}, map[what]int{}
	for _, e := range r.w.effects[:len(s.Effects)] {
		first[whatOf(e)] = e
	}
	for _, e := range s.Later {
		allowed[what{e.Run, e.Name, canonical(e.Input)}]++
	}
	for _, e := range r.w.effects[len(s.Effects):] {
		k := whatOf(e)
		before, ok := first[k]
		if allowed[k]--; !ok || allowed[k] >= 0 {
			continue
		}
		cause := ""
		if e.key == "" {
			cause = ": it has no key"
		} else if e.key != before.key {
			cause = ": its key has changed"
		}
		r.fail("effect %s, which %s has made, is made again when the run is taken over%s", e.name, r.version, cause)
	}
}

// checkEnd checks what is left of a user.
func (r *resumption) checkEnd(ctx context.Context, name string) {
	v, err := r.d.observer.View(ctx, name)
	if err != nil {
		r.fail("%s cannot be read in the end: %s", name, reasonOf(err))
		return
	}
	r.w.secrets.Add(v.State())
	if v.Run != nil || len(v.Queue)+v.Tickets > 0 {
		r.fail("%s: a run or a message is left", name)
	}
	for _, finding := range checkEndConversation(r.w, v) {
		r.fail("%s: %s", name, finding)
	}
}

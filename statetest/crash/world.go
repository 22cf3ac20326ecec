package crash

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
)

// world is what the processes of a case share.
type world struct {
	db      store.Store   // the handle of the test itself
	ttl     time.Duration // of the processes
	secrets *kit.Secrets

	mu       sync.Mutex
	counting bool // points count, and faults happen
	plan     []planned
	numbers  map[string]int // of points, by place
	reached  []point
	met      []int // for each fault that has happened, how many points were reached by then
	excuses  int   // faults in a process that lived, for each of which one run may fail

	scripts  []sharedScript
	stores   []*store.Memory
	effects  []effect
	byKey    map[[2]string]effect // the first with a name and a key
	requests []request            // of turns
	runs     map[string]bool      // the ids of their runs
	timeline []event
	findings []string
}

// sharedScript is the script of the nth Model of all processes of a case.
type sharedScript struct {
	kit.Script
	format *provider.Format
}

func newWorld(plan []planned) *world {
	return &world{
		plan: plan, numbers: map[string]int{}, byKey: map[[2]string]effect{}, runs: map[string]bool{},
		secrets: kit.NewSecrets(),
	}
}

// count begins or ends the part of a case whose points count.
func (w *world) count(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counting = on
}

// effect is an effect that was made outside. Files have it.
type effect struct {
	Name  string     `json:"name"`
	Key   string     `json:"key,omitempty"`
	Input state.JSON `json:"input"`          // as of inputOf
	Run   string     `json:"run,omitempty"`  // its id, "" if ctx had none
	Call  string     `json:"call,omitempty"` // the key of the call whose function has made it, "" if ctx had none

	at string // the point

	process string
	attempt int
}

// inputOf returns the JSON of an input, with the members of objects sorted:
// equal inputs have equal texts.
func inputOf(input any) (state.JSON, error) {
	in, err := state.JSONOf(input)
	if err != nil {
		return "", err
	}
	tree, err := jsontext.Decode([]byte(in), jsontext.Limits{})
	if err != nil {
		return "", err
	}
	return state.JSONOf(tree)
}

// event is a line of the timeline of a case.
type event struct {
	process, at, what string
	effect            *effect
}

// Helper and Errorf make a world what its Models report to.
func (w *world) Helper() {}

// Errorf adds a finding.
func (w *world) Errorf(format string, args ...any) {
	w.fail(strings.TrimPrefix(fmt.Sprintf(format, args...), "statetest: "))
}

func (w *world) fail(findings ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, findings...)
}

func (w *world) note(p *Process, at point, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := ""
	if at.name != "" {
		name = at.String()
	}
	if n := len(w.timeline); n > 0 && name != "" && w.timeline[n-1].at == name { // what was made there
		w.timeline[n-1].what += ", " + what
		return
	}
	w.timeline = append(w.timeline, event{process: p.name, at: name, what: what})
}

// makeEffect makes an effect, unless its key has been used for it before.
func (w *world) makeEffect(e effect) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]string{e.Name, e.Key}
	first, found := w.byKey[key]
	switch {
	case e.Key == "" || !found:
		w.byKey[key] = e
		w.effects = append(w.effects, e)
		w.addEffect(e, "made")
	case first.Input != e.Input:
		w.addEffect(e, "refused: the key had another input")
		return fmt.Errorf("crash: effect %s: its key was used with another input", e.Name)
	default:
		w.addEffect(e, "the key comes again")
	}
	return nil
}

// addEffect adds an effect to the timeline. The caller holds mu.
func (w *world) addEffect(e effect, what string) {
	if e.attempt > 0 {
		what += fmt.Sprintf(", attempt %d", e.attempt)
	}
	w.timeline = append(w.timeline, event{process: e.process, at: e.at, what: what, effect: &e})
}

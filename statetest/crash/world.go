package crash

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
)

// world is what the processes of a case share.
type world struct {
	db      *store.Memory
	results map[string]func(input state.JSON) (any, error)
	ttl     time.Duration // of the processes
	secrets kit.Masks

	mu       sync.Mutex
	counting bool // points count, and faults happen
	plan     []planned
	numbers  map[string]int // of points, by place
	reached  []point
	met      []int // for each fault that has happened, how many points were reached by then
	excuses  int   // faults in a process that lived, for each of which one run may fail

	scripts  []sharedScript
	handlers []http.Handler
	stores   []*store.Memory

	effects  []effect
	byKey    map[[2]string]firstEffect
	timeline []event
	findings []string
}

// sharedScript is the script of the nth Model of all processes of a case.
type sharedScript struct {
	kit.Script
	format *provider.Format
}

func newWorld(results map[string]func(state.JSON) (any, error), plan []planned) *world {
	return &world{
		db: store.NewMemory(), results: results, plan: plan, numbers: map[string]int{}, byKey: map[[2]string]firstEffect{}, secrets: kit.NewMasks(),
	}
}

// effect is an effect that was made outside.
type effect struct {
	at        string // the point
	name, key string
	input     state.JSON
	process   string
	run       string // its id, "" if ctx had none
	attempt   int
}

// firstEffect is the effect of a key, with its result.
type firstEffect struct {
	effect
	result state.JSON
	reply  *recordedReply
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, strings.TrimPrefix(fmt.Sprintf(format, args...), "statetest: "))
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

func (w *world) handler(n int, h http.Handler) http.Handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == len(w.handlers) {
		w.handlers = append(w.handlers, h)
	}
	return w.handlers[n]
}

func (w *world) store(n int, db *store.Memory) *store.Memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == len(w.stores) {
		w.stores = append(w.stores, db)
	}
	return w.stores[n]
}

// result returns what Results says.
func (w *world) result(name string, input state.JSON) (state.JSON, error) {
	fn := w.results[name]
	if fn == nil {
		return `{"ok":true}`, nil
	}
	v, err := fn(input)
	if err != nil {
		return "", err
	}
	return state.JSONOf(v)
}

// makeEffect makes an effect, unless its key has been used for it before.
func (w *world) makeEffect(e effect, result func() (state.JSON, error)) (state.JSON, error) {
	first, found, err := w.earlier(e)
	if found || err != nil {
		return first.result, err
	}
	v, err := result()
	if err == nil {
		first = w.made(e, firstEffect{effect: e, result: v})
	}
	return first.result, err
}

// earlier returns the effect that has the key of e.
func (w *world) earlier(e effect) (firstEffect, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, found := w.byKey[[2]string{e.name, e.key}]
	if e.key == "" || !found {
		return firstEffect{}, false, nil
	}
	what := "the key comes again"
	if !sameJSON(first.input, e.input) {
		what = "refused: the key had another input"
	}
	w.addEffect(e, what)
	if !sameJSON(first.input, e.input) {
		return firstEffect{}, true, fmt.Errorf("crash: effect %s: its key was used with another input", e.name)
	}
	return first, true, nil
}

// made notes an effect, unless another call with its key was faster.
func (w *world) made(e effect, first firstEffect) firstEffect {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]string{e.name, e.key}
	if other, found := w.byKey[key]; found && e.key != "" {
		return other
	}
	w.byKey[key] = first
	w.effects = append(w.effects, e)
	w.addEffect(e, "made")
	return first
}

// addEffect adds an effect to the timeline. The caller holds mu.
func (w *world) addEffect(e effect, what string) {
	if e.attempt > 0 {
		what += fmt.Sprintf(", attempt %d", e.attempt)
	}
	w.timeline = append(w.timeline, event{process: e.process, at: e.at, what: what, effect: &e})
}

// recordedReply is a response that is given again.
type recordedReply struct {
	status int
	header http.Header
	body   []byte
}

func (r *recordedReply) response() *http.Response {
	return &http.Response{
		StatusCode: r.status, Status: fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header.Clone(), Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}
}

// exchange is makeEffect for a request.
func (w *world) exchange(e effect, serve func() *http.Response) (*http.Response, error) {
	first, found, err := w.earlier(e)
	switch {
	case err != nil:
		r := recordedReply{http.StatusUnprocessableEntity, http.Header{}, []byte(err.Error())}
		return r.response(), nil
	case found && first.reply != nil:
		return first.reply.response(), nil
	}
	resp := serve()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, err
	}
	r := &recordedReply{resp.StatusCode, resp.Header, body}
	first = w.made(e, firstEffect{effect: e, reply: r})
	return cmp.Or(first.reply, r).response(), nil
}

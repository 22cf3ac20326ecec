package statetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// Seen notes what an agent sees of one run of [Interfere]. Its methods are safe
// for concurrent use.
type Seen struct {
	agent string

	mu       sync.Mutex
	ended    bool
	models   []*Model
	others   map[string]bool // whose requests came, beside those of the agent
	sights   []sight
	problems []string // of the models
}

// sight is something that the agent saw. Those of one stream are compared in
// their order.
type sight struct {
	stream string // request, a text, or a view of the state
	lines  []string
}

func newSeen(agent string) *Seen { return &Seen{agent: agent, others: map[string]bool{}} }

// Model returns a Model with the replies, as [NewModel] does. The agent sees its
// own requests. Those over HTTP are its own if the context of the request has
// its handle.
func (s *Seen) Model(f *provider.Format, replies ...Reply) *Model {
	script := newScript(replies)
	m := newModel(seenReporter{s}, f, script)
	m.seen = s.request
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := script.check(); err != nil {
		s.problems = append(s.problems, "Seen.Model: "+err.Error())
	}
	if f == nil {
		s.problems = append(s.problems, "Seen.Model: no format")
	}
	s.models = append(s.models, m)
	return m
}

// Text notes a text that the agent sees, such as a reply, a log line or an
// error. Texts of one name are compared in the order in which they come.
func (s *Seen) Text(name, text string) {
	s.add("text "+name, strings.Split(text, "\n"))
}

func (s *Seen) request(r asked) {
	if r.Agent != s.agent {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.others[r.by()] = true
		return
	}
	text := r.said()
	var b bytes.Buffer
	if r.overHTTP && json.Indent(&b, []byte(text), "", "  ") == nil {
		text = b.String()
	}
	s.add("request", strings.Split(text, "\n"))
}

func (s *Seen) add(stream string, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.sights = append(s.sights, sight{stream, lines})
	}
}

// end adds what the handle of the agent shows of the state, and ends the run.
// It reports whether anything was seen before.
func (s *Seen) end(st *state.State) (any bool) {
	for _, m := range s.models {
		m.end(func(missing []string) {
			if len(missing) > 0 {
				seenReporter{s}.Errorf("replies of the model are left:\n%s", indent(missing))
			}
		})
	}
	any = len(s.sights) > 0
	view := st.As(s.agent)
	s.add("Describe", strings.Split(view.Describe(), "\n"))
	var fields []string
	for _, info := range view.Fields() {
		fields = append(fields, fmt.Sprintf("%+v", info))
	}
	s.add("Fields", fields)
	s.add("Version", []string{fmt.Sprint(view.Version())})
	s.add("Changes", changeLines(view))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return any
}

// changeLines returns the changes that a handle sees, without times.
func changeLines(st *state.State) []string {
	var lines []string
	for c, err := range st.Changes(0) {
		if err != nil {
			return append(lines, err.Error())
		}
		if r, ok := c.Value.(state.InferenceResult); ok {
			r.StartedAt, r.CreatedAt = time.Time{}, time.Time{}
			c.Value = r
		}
		lines = append(lines, fmt.Sprintf("%d %s %s", c.Version, journalLine(c), jsonLine(c.Value)))
	}
	return lines
}

// seenReporter is what the models of a run report to: the other run may show
// something that matters more.
type seenReporter struct{ s *Seen }

func (r seenReporter) Helper() {}

func (r seenReporter) Errorf(format string, args ...any) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.problems = append(r.s.problems, strings.TrimPrefix(fmt.Sprintf(format, args...), "statetest: "))
}

// Fatalf ends the goroutine of an agent that would not stop.
func (r seenReporter) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// difference is the first thing that two runs show differently.
type difference struct {
	what      string
	want, got []string // nil if a run does not show it
}

// firstDifference returns what the runs show differently and was seen first in
// one of them, nil if they show the same.
func firstDifference(want, got []sight) *difference {
	place := func(i, run int) int { return 2*i + run }
	var found *difference
	at := place(len(want)+len(got), 0)
	for run, pair := range [2][2][]sight{{want, got}, {got, want}} {
		number := map[string]int{}
		for i, s := range pair[0] {
			number[s.stream]++
			other, shown := nth(pair[1], s.stream, number[s.stream])
			if at <= place(i, run) || shown && slices.Equal(s.lines, other) {
				continue
			}
			at = place(i, run)
			found = &difference{what: s.name(number[s.stream]), want: s.lines, got: other}
			if run == 1 {
				found.want, found.got = found.got, found.want
			}
		}
	}
	return found
}

// nth returns what a stream shows as the nth, from 1.
func nth(sights []sight, stream string, n int) (lines []string, shown bool) {
	for _, s := range sights {
		if s.stream == stream {
			if n--; n == 0 {
				return s.lines, true
			}
		}
	}
	return nil, false
}

func (s sight) name(number int) string {
	if s.stream == "request" {
		return fmt.Sprintf("request %d", number)
	}
	return s.stream
}

// text shows the difference, masked.
func (d *difference) text(masks *secrets) string {
	return lineDiff(maskLines(masks, d.want), maskLines(masks, d.got))
}

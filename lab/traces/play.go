package traces

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentstate/state"
)

// activeAgent is the agent of the last turn. A transfer is a write to it.
var activeAgent = &state.Field[string]{
	Name:        "active_agent",
	Description: "The agent whose turn was the last.",
}

// schema has no team: any agent that a recording names may take part. It has no
// limits, because recordings may be longer than an application allows.
var schema = state.MustSchema(activeAgent, state.Limits{ValueBytes: -1, Results: -1})

// Stats counts what was played.
type Stats struct {
	Runs     int
	Entries  int // messages, events or exchanges in the file
	Messages int // in the conversation of the state
	Results  int // inference results, one for each turn
	Calls    int // tool calls
	Answers  int // tool results
	Agents   map[string]int
	Time     time.Duration // spent in the State, without reading and checking
	Checked  int           // steps after which the whole State was checked

	Requests   Tally
	Responses  Tally // that are not streamed
	Streams    Tally
	NotWhole   int   // streams that broke off, or with an event in error
	Refused    Tally // requests that the provider refused, and how many of them Check foresaw
	Unanswered int   // requests without an answer for another reason
	Carriages  map[Way]Carriage
	Vendors    map[string]Vendor // by name, "" if it is unknown
	Notes      []Note

	Trims    int // conversations that were trimmed and checked
	Carried  int // conversations that were repaired for a provider and checked
	False    int // findings in valid conversations
	Failures int // of any kind, false findings included
}

// Add adds the counts of another run or file.
func (s *Stats) Add(o Stats) {
	s.Runs += o.Runs
	s.Entries += o.Entries
	s.Messages += o.Messages
	s.Results += o.Results
	s.Calls += o.Calls
	s.Answers += o.Answers
	s.Time += o.Time
	s.Checked += o.Checked
	if s.Agents == nil {
		s.Agents = map[string]int{}
	}
	for agent, turns := range o.Agents {
		s.Agents[agent] += turns
	}
	s.Requests.add(o.Requests)
	s.Responses.add(o.Responses)
	s.Streams.add(o.Streams)
	s.NotWhole += o.NotWhole
	s.Refused.add(o.Refused)
	s.Unanswered += o.Unanswered
	sum(&s.Carriages, o.Carriages, (*Carriage).add)
	sum(&s.Vendors, o.Vendors, (*Vendor).add)
	s.Notes = append(s.Notes, o.Notes...)
	s.Trims += o.Trims
	s.Carried += o.Carried
	s.False += o.False
	s.Failures += o.Failures
}

// Options are the options of [Play].
type Options struct {
	Verify   bool           // check the State after every step and at the end
	Progress func(done int) // called after every step (default: none)
}

// Play writes a run to a new State, step by step. Its error has the path of the
// turn that failed.
func Play(run *Run, opts Options) (Stats, error) {
	st := state.New(schema)
	stats := Stats{Runs: 1, Entries: run.Entries, Agents: map[string]int{}}
	var talk []state.Message // the conversation so far
	var check *verifier
	if opts.Verify {
		check = newVerifier(run, st)
	}
	for i := range run.Steps {
		step := &run.Steps[i]
		start := time.Now()
		said, err := playStep(st, step, talk)
		stats.Time += time.Since(start)
		talk = said
		stats.Agents[step.Agent]++
		if err != nil {
			return stats, atPath(step.Path, err)
		}
		if check != nil {
			if err := check.afterStep(i); err != nil {
				return stats, err
			}
		}
		if opts.Progress != nil {
			opts.Progress(i + 1)
		}
	}
	if len(run.Rest) > 0 {
		if err := state.Messages.Set(st, run.Rest); err != nil {
			return stats, atPath(run.Path, fmt.Errorf("what follows the last turn: %w", err))
		}
		talk = append(talk, run.Rest...)
	}
	if check != nil {
		if err := check.end(talk); err != nil {
			return stats, err
		}
		stats.Checked = len(check.forks)
	}
	stats.count(st)
	return stats, nil
}

// playStep writes one step and returns the conversation after it.
func playStep(st *state.State, step *Step, talk []state.Message) ([]state.Message, error) {
	if len(step.Said) > 0 {
		if err := state.Messages.Set(st, step.Said); err != nil {
			return talk, err
		}
		talk = append(talk, step.Said...)
	}
	agent := st.As(step.Agent)
	if activeAgent.GetOr(agent, "") != step.Agent {
		if err := activeAgent.Set(agent, step.Agent); err != nil {
			return talk, err
		}
	}
	err := agent.History().Append(state.InferenceResult{
		ID:        step.Path,
		Agent:     step.Agent,
		Input:     step.input(),
		History:   talk,
		Output:    step.Output,
		ToolCalls: step.Results,
		Raw:       step.Raw,
		CreatedAt: step.Time,
	})
	talk = append(talk, step.Output...)
	for _, m := range step.Results {
		talk = append(talk, m)
	}
	return talk, err
}

// input returns the text of the user before the step. It is empty if the model
// continues after a tool result.
func (step *Step) input() string {
	var texts []string
	for _, m := range step.Said {
		if m, ok := m.(state.TextMessage); ok && m.Role() == "user" {
			texts = append(texts, m.Text())
		}
	}
	return strings.Join(texts, "\n")
}

// count counts the content of the State, which may differ from the recording.
func (s *Stats) count(st *state.State) {
	s.Results = st.History().Len()
	for _, m := range state.ListItems(st, state.Messages, 0) {
		s.Messages++
		switch m := m.(type) {
		case state.ToolCallMessage:
			s.Calls += len(m.Calls())
		case state.ToolResultMessage:
			s.Answers++
		}
	}
}

// Played is the outcome of a file.
type Played struct {
	Kinds  map[string]*Stats // by Run.Kind
	Others []string          // descriptions of the parts that were not played
	Err    error             // all failures, joined
}

// Total returns the sum of all kinds.
func (p *Played) Total() Stats {
	var total Stats
	for _, stats := range p.Kinds {
		total.Add(*stats)
	}
	return total
}

// PlayFile reads data and plays all runs in it. Errors in one part do not stop
// the others.
func PlayFile(data []byte, opts Options) Played {
	file, err := Read(data)
	errs := []error{err}
	played := Played{Kinds: map[string]*Stats{}, Others: file.Others}
	done := 0
	for _, run := range file.Runs {
		o := opts
		if opts.Progress != nil {
			before := done
			o.Progress = func(n int) { opts.Progress(before + n) }
		}
		stats, err := Play(run, o)
		failed := splitErrors(err)
		for _, x := range run.exchanges {
			failed = append(failed, x.check(&stats, opts.Verify)...)
		}
		stats.Failures = len(failed)
		errs = append(errs, failed...)
		done += len(run.Steps)
		if played.Kinds[run.Kind] == nil {
			played.Kinds[run.Kind] = &Stats{}
		}
		played.Kinds[run.Kind].Add(stats)
	}
	played.Err = errors.Join(errs...)
	return played
}

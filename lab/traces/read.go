// Package traces loads recorded runs of agents and plays them through a State.
//
// There are two kinds of recordings. Logs have what was said, in the words of a
// harness: chat messages as τ-bench and SWE-agent write them (chat.go, and
// responses.go for the shape that mini-swe-agent takes over from another API), and
// the events of an ADK session (adk.go). Each entry becomes messages that hold
// all the entry held, under the names this library uses; conversation.go puts
// them in steps, one for each turn of a model, and pairs tool results with their
// calls. Recordings of the other kind have what went over the wire to a provider
// and back (exchange.go), in formats that package provider reads (wire.go);
// thread.go puts them in steps.
//
// play.go is what an application would do: it writes the steps to a State.
// verify.go checks that nothing was lost or changed on the way. roundtrip.go and
// acceptance.go put what went over the wire, and what a log says was sent
// (sent.go), through the packages provider and transcript.
package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// File is what a file holds.
type File struct {
	Runs   []*Run
	Others []string // what in it is no conversation of a known format
}

// Run is one recorded conversation.
type Run struct {
	Kind    string          // such as "τ-bench" or "Anthropic exchange"
	Path    string          // of its entries in the file, such as $.traj or $[3].traj
	Entries int             // how many messages, events or exchanges there are
	Steps   []Step          // the turns, in order
	Rest    []state.Message // what came after the last turn and its results

	entries   []entry     // of a log
	exchanges []*exchange // with the provider
}

// Step is one turn of a model, and what came before and of it.
type Step struct {
	Path    string                    // of the turn in the file
	Said    []state.Message           // what others said since the step before
	Agent   string                    // whose turn it is
	Output  []state.Message           // what the model said
	Results []state.ToolResultMessage // the results that follow, of the calls in Output
	Raw     string                    // the turn as it is in the file
	Time    time.Time                 // when it was, zero if the trace does not say
}

// entry is a message or event of a log and the messages that it became.
type entry struct {
	path string
	raw  []byte
	step int // the step that it belongs to, len(Steps) for what is in Rest
	msgs []state.Message
}

// log tells one kind of log from all others and reads it.
type log struct {
	kind string
	list string // the member that holds the entries
	is   func(o jsontext.Object) bool
	read func(c *conversation, e *entry, o jsontext.Object) error
	sent func(run *Run, entries [][]byte) *exchange
}

var logs = []log{
	{"τ-bench", "traj", func(jsontext.Object) bool { return true }, (*conversation).chat, chatSent},
	{"SWE-agent", "history", loose.Has("trajectory", "info", "environment"), (*conversation).chat, chatSent},
	{"mini-swe-agent", "messages", loose.Has("trajectory_format", "info"), (*conversation).chat, chatSent},
	{"ADK session", "events", isSession, (*conversation).event, adkSent},
}

// logOf returns the kind of log that an object is, nil if it is none.
func logOf(o jsontext.Object) *log {
	for i, l := range logs {
		if jsontext.Kind(o.Get(l.list)) == "array" && l.is(o) {
			return &logs[i]
		}
	}
	return nil
}

// Read returns what is in a file, told by its shape: a log, an array of logs,
// recorded exchanges, the body of a response or the events of a stream. It
// returns an [Error] for each part that cannot be read, joined; what is beside it
// is returned all the same.
func Read(data []byte) (File, error) {
	if err := checkSyntax(data); err != nil {
		return File{}, err
	}
	switch jsontext.Kind(data) {
	case "object":
		return readObject(data)
	case "array":
		return readArray(data)
	}
	return File{Others: []string{describe(data)}}, nil
}

func readObject(data []byte) (File, error) {
	o, err := jsontext.Members(data)
	if err != nil {
		return File{}, at("$", err)
	}
	if l := logOf(o); l != nil {
		run, err := l.run("$", o)
		if err != nil {
			return File{}, err
		}
		return File{Runs: []*Run{run}}, nil
	}
	if list := o.Get("exchanges"); jsontext.Kind(list) == "array" {
		return readExchanges(list)
	}
	if what := otherOf(o); what != "" {
		return File{Others: []string{what}}, nil
	}
	if x := bodyOf(o, data); x != nil {
		return File{Runs: []*Run{alone(x)}}, nil
	}
	return File{Others: []string{describe(data)}}, nil
}

// readArray reads the events of a stream, or logs. In an array that has a log
// everything has to be one.
func readArray(data []byte) (File, error) {
	list, err := jsontext.Elements(data)
	if err != nil {
		return File{}, at("$", err)
	}
	var file File
	var errs []error
	isLog := false
	for i, element := range list {
		path := jsontext.Index("$", i)
		o := loose.Members(element)
		l := logOf(o)
		if l == nil {
			errs = append(errs, &fault.Error{Path: path, Got: "not a trace: " + describe(element)})
			continue
		}
		isLog = true
		run, err := l.run(path, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		file.Runs = append(file.Runs, run)
	}
	if isLog {
		return file, errors.Join(errs...)
	}
	if x := streamOf(list); x != nil {
		return File{Runs: []*Run{alone(x)}}, nil
	}
	return File{Others: []string{describe(data)}}, nil
}

// checkSyntax returns an error if data is not JSON. What encoding/json accepts
// and a message does not, such as a member that occurs twice, is found later, and
// only in the parts that are read.
func checkSyntax(data []byte) error {
	var ignored json.RawMessage
	err := json.Unmarshal(data, &ignored)
	if err == nil {
		return nil
	}
	offset := int64(len(data))
	var bad *json.SyntaxError
	if errors.As(err, &bad) {
		offset = bad.Offset
	}
	path := "$"
	if found := fault.As(jsontext.Check(data, jsontext.Limits{})); found != nil {
		path = found.Path
	}
	return at(path, fmt.Errorf("%w (byte %d)", err, offset))
}

// run reads a log, the value at path.
func (l *log) run(path string, o jsontext.Object) (*Run, error) {
	path = jsontext.Path(path, l.list)
	entries, err := jsontext.Elements(o.Get(l.list))
	if err != nil {
		return nil, at(path, err)
	}
	c := conversation{run: &Run{Kind: l.kind, Path: path, Entries: len(entries)}}
	for i, raw := range entries {
		entry := jsontext.Index(path, i)
		err := checkEntry(raw)
		if err == nil {
			err = c.read(entry, raw, l)
		}
		if err != nil {
			return nil, at(entry, err)
		}
	}
	run := c.end()
	x := l.sent(run, entries)
	x.decode()
	run.exchanges = []*exchange{x}
	return run, nil
}

// checkEntry returns an error unless raw is an object that messages can be made of
// without loss.
func checkEntry(raw []byte) error {
	if kind := jsontext.Kind(raw); kind != "object" {
		return &fault.Error{Path: "$", Want: "object", Got: kind}
	}
	err := jsontext.Check(raw, jsontext.Limits{})
	if found := fault.As(err); found != nil && found.Offset > 0 {
		// The text is JSON: what is left is an invalid escape or character, whose
		// text ends with the byte.
		placed := *found
		placed.Got += " of the entry"
		return &placed
	}
	return err
}

// at returns err as the error of a place in a file. An error of a part of that
// place gets the path of the part.
func at(path string, err error) error {
	switch err.(type) {
	case *fault.Error, *fault.LimitError:
		return fault.Under(path, err)
	}
	return &fault.Error{Path: path, Got: err.Error(), Cause: err}
}

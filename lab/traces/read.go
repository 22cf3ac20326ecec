// Package traces reads recordings of agents and plays them through a State.
//
// There are two kinds of recordings. A log holds a conversation in the form of
// an agent program: chat messages of τ-bench and SWE-agent (chat.go), the
// variant of mini-swe-agent (responses.go), and the events of an ADK session
// (adk.go). Each entry becomes messages that hold everything the entry held.
// conversation.go puts them in steps, one for each turn of a model, and pairs
// results with calls.
//
// An exchange holds the request to a provider and its response (exchange.go),
// in a format of package provider (wire.go). thread.go puts exchanges in steps.
//
// play.go does what an application would do: it writes the steps to a State.
// verify.go checks that nothing was lost or changed. roundtrip.go and
// acceptance.go put every exchange through the packages provider and
// transcript. sent.go derives an exchange from a log.
//
// Errors are [fault.Error]s whose Path is the place in the file.
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

// File is the content of a file.
type File struct {
	Runs   []*Run
	Others []string // descriptions of the parts that are not conversations
}

// Run is one recorded conversation.
type Run struct {
	Kind    string          // such as "τ-bench" or "Anthropic exchange"
	Path    string          // of its entries in the file, such as $.traj or $[3].traj
	Entries int             // number of messages, events or exchanges
	Steps   []Step          // the turns, in order
	Rest    []state.Message // after the last turn and its results

	entries   []entry     // of a log
	exchanges []*exchange // with the provider
}

// Step is one turn of a model with the messages before it and the results after
// it.
type Step struct {
	Path    string                    // of the turn in the file
	Said    []state.Message           // messages of others since the step before
	Agent   string                    // that took the turn
	Output  []state.Message           // of the model
	Results []state.ToolResultMessage // of the calls in Output
	Raw     string                    // the turn in the file, byte for byte
	Time    time.Time                 // zero if the recording has none
}

// entry is a message or event of a log with the messages made of it.
type entry struct {
	path string
	raw  []byte
	step int // its step, len(Steps) for a message in Rest
	msgs []state.Message
}

// logFormat recognises one kind of log and reads it.
type logFormat struct {
	kind string
	list string // the member that holds the entries
	is   func(o jsontext.Object) bool
	read func(c *conversation, e *entry, o jsontext.Object) error
	sent func(run *Run, entries [][]byte) *exchange
}

var logFormats = []logFormat{
	{"τ-bench", "traj", func(jsontext.Object) bool { return true }, (*conversation).chat, chatSent},
	{"SWE-agent", "history", loose.Has("trajectory", "info", "environment"), (*conversation).chat, chatSent},
	{"mini-swe-agent", "messages", loose.Has("trajectory_format", "info"), (*conversation).chat, chatSent},
	{"ADK session", "events", isSession, (*conversation).event, adkSent},
}

// logOf returns the format of a log, nil if the object is not a log.
func logOf(o jsontext.Object) *logFormat {
	for i, l := range logFormats {
		if jsontext.Kind(o.Get(l.list)) == "array" && l.is(o) {
			return &logFormats[i]
		}
	}
	return nil
}

// Read recognises a recording by its shape: a log, an array of logs, exchanges,
// the body of a response, or the events of a stream. It returns the joined
// errors of the parts that it could not read, and everything else.
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
		return File{}, atPath("$", err)
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
	if what := foreignKind(o); what != "" {
		return File{Others: []string{what}}, nil
	}
	if x := bodyOf(o, data); x != nil {
		return File{Runs: []*Run{singleRun(x)}}, nil
	}
	return File{Others: []string{describe(data)}}, nil
}

// readArray reads the events of a stream, or logs. If one element is a log, all
// must be logs.
func readArray(data []byte) (File, error) {
	list, err := jsontext.Elements(data)
	if err != nil {
		return File{}, atPath("$", err)
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
		return File{Runs: []*Run{singleRun(x)}}, nil
	}
	return File{Others: []string{describe(data)}}, nil
}

// checkSyntax returns an error if data is not JSON. What encoding/json accepts
// and a message refuses, such as a member that occurs twice, is found later,
// and only in the parts that are read.
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
	return atPath(path, fmt.Errorf("%w (byte %d)", err, offset))
}

// run reads a log, the value at path.
func (l *logFormat) run(path string, o jsontext.Object) (*Run, error) {
	path = jsontext.Path(path, l.list)
	entries, err := jsontext.Elements(o.Get(l.list))
	if err != nil {
		return nil, atPath(path, err)
	}
	c := conversation{run: &Run{Kind: l.kind, Path: path, Entries: len(entries)}}
	for i, raw := range entries {
		entry := jsontext.Index(path, i)
		err := checkEntry(raw)
		if err == nil {
			err = c.read(entry, raw, l)
		}
		if err != nil {
			return nil, atPath(entry, err)
		}
	}
	run := c.end()
	x := l.sent(run, entries)
	x.decode()
	run.exchanges = []*exchange{x}
	return run, nil
}

// checkEntry returns an error unless raw is an object that messages can be made
// of without loss.
func checkEntry(raw []byte) error {
	if kind := jsontext.Kind(raw); kind != "object" {
		return &fault.Error{Path: "$", Want: "object", Got: kind}
	}
	err := jsontext.Check(raw, jsontext.Limits{})
	if found := fault.As(err); found != nil && found.Offset > 0 {
		// The entry is JSON, so the fault is an invalid escape or character.
		// Its text ends with the number of the byte.
		placed := *found
		placed.Got += " of the entry"
		return &placed
	}
	return err
}

// atPath returns err as the error of a place in a file. An error of a part of
// that place gets the path of the part.
func atPath(path string, err error) error {
	switch err.(type) {
	case *fault.Error, *fault.LimitError:
		return fault.Under(path, err)
	}
	return &fault.Error{Path: path, Got: err.Error(), Cause: err}
}

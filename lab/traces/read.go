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
	"strconv"
	"strings"
	"time"

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
	Pointer string          // where its entries are in the file, as in "/traj" or "/3/traj"
	Entries int             // how many messages, events or exchanges there are
	Steps   []Step          // the turns, in order
	Rest    []state.Message // what came after the last turn and its results

	entries   []entry     // of a log
	exchanges []*exchange // with the provider
}

// Step is one turn of a model, and what came before and of it.
type Step struct {
	Pointer string                    // where the turn is in the file
	Said    []state.Message           // what others said since the step before
	Agent   string                    // whose turn it is
	Output  []state.Message           // what the model said
	Results []state.ToolResultMessage // the results that follow, of the calls in Output
	Raw     string                    // the turn as it is in the file
	Time    time.Time                 // when it was, zero if the trace does not say
}

// entry is a message or event of a log and the messages that it became.
type entry struct {
	pointer string
	raw     []byte
	step    int // the step that it belongs to, len(Steps) for what is in Rest
	msgs    []state.Message
}

// Error says where in a file something could not be read or played, or is not
// as it should be.
type Error struct {
	Pointer string // JSON pointer
	Offset  int64  // the byte at which reading stopped, -1 if all could be read
	Err     error
}

func (e *Error) Error() string {
	pointer := e.Pointer
	if pointer == "" {
		pointer = "top level"
	}
	if e.Offset >= 0 {
		return fmt.Sprintf("%s (byte %d): %v", pointer, e.Offset, e.Err)
	}
	return pointer + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

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
	{"SWE-agent", "history", hasAny("trajectory", "info", "environment"), (*conversation).chat, chatSent},
	{"mini-swe-agent", "messages", hasAny("trajectory_format", "info"), (*conversation).chat, chatSent},
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

func hasAny(names ...string) func(jsontext.Object) bool {
	return func(o jsontext.Object) bool {
		for _, name := range names {
			if o.Get(name) != nil {
				return true
			}
		}
		return false
	}
}

// Read returns what is in a file, told by its shape: a log, an array of logs,
// recorded exchanges, the body of a response or the events of a stream. It
// returns an [Error] for each part that cannot be read, joined; what is beside it
// is returned all the same.
func Read(data []byte) (File, error) {
	if err := syntax(data); err != nil {
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
		return File{}, &Error{"", -1, err}
	}
	if l := logOf(o); l != nil {
		run, err := l.run("", data, o)
		if err != nil {
			return File{}, err
		}
		return File{Runs: []*Run{run}}, nil
	}
	if list := jsontext.Object(o).Get("exchanges"); jsontext.Kind(list) == "array" {
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
		return File{}, &Error{"", -1, err}
	}
	var file File
	var errs []error
	isLog := false
	for i, element := range list {
		pointer := "/" + strconv.Itoa(i)
		o := members(element)
		l := logOf(o)
		if l == nil {
			errs = append(errs, &Error{pointer, -1, errors.New("not a trace: " + describe(element))})
			continue
		}
		isLog = true
		run, err := l.run(pointer, data, o)
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

// syntax returns an error if data is not JSON at all. What encoding/json accepts
// and a message does not, such as a member that is there twice, is found later,
// and only in the parts that are read.
func syntax(data []byte) error {
	var ignored json.RawMessage
	err := json.Unmarshal(data, &ignored)
	if err == nil {
		return nil
	}
	found := &Error{Offset: int64(len(data)), Err: err}
	var bad *json.SyntaxError
	if errors.As(err, &bad) {
		found.Offset = bad.Offset
	}
	var at *fault.Error
	if errors.As(jsontext.Check(data, jsontext.Limits{}), &at) {
		found.Pointer = pointerOf(at.Path)
	}
	return found
}

// run reads a log, which is a part of data.
func (l *log) run(pointer string, data []byte, o jsontext.Object) (*Run, error) {
	pointer += "/" + l.list
	entries, err := jsontext.Elements(o.Get(l.list))
	if err != nil {
		return nil, &Error{pointer, -1, err}
	}
	c := conversation{run: &Run{Kind: l.kind, Pointer: pointer, Entries: len(entries)}}
	for i, raw := range entries {
		at := pointer + "/" + strconv.Itoa(i)
		if err := checkEntry(data, at, raw); err != nil {
			return nil, err
		}
		if err := c.read(at, raw, l); err != nil {
			return nil, &Error{at, -1, err}
		}
	}
	run := c.end()
	x := l.sent(run, entries)
	x.decode()
	run.exchanges = []*exchange{x}
	return run, nil
}

// checkEntry returns an error unless raw, an entry that is a part of data, is an
// object that messages can be made of without loss.
func checkEntry(data []byte, pointer string, raw []byte) error {
	if kind := jsontext.Kind(raw); kind != "object" {
		return &Error{pointer, -1, errors.New("want an object, got " + kind)}
	}
	err := jsontext.Check(raw, jsontext.Limits{})
	var at *fault.Error
	if !errors.As(err, &at) {
		return err
	}
	found := &Error{pointer + pointerOf(at.Path), -1, errors.New(at.Problem())}
	if at.Offset > 0 {
		// A part keeps the capacity of the whole, which tells where it is.
		found.Offset = int64(cap(data) - cap(raw) + at.Offset)
	}
	return found
}

// pointerOf returns the JSON pointer for a path such as $.a[3]["odd name"].
func pointerOf(path string) string {
	var b strings.Builder
	rest := strings.TrimPrefix(path, "$")
	for rest != "" {
		name := ""
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return b.String()
			}
			name, _ = strconv.Unquote(quoted)
			rest = strings.TrimPrefix(rest[1+len(quoted):], "]")
		case rest[0] == '[':
			name, rest, _ = strings.Cut(rest[1:], "]")
		default:
			rest = strings.TrimPrefix(rest, ".")
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			name, rest = rest[:n], rest[n:]
		}
		b.WriteString("/" + escaped(name))
	}
	return b.String()
}

// Package traces loads recorded runs of agents and plays them through a State.
//
// There are three formats, each with its file: chat messages as τ-bench and
// SWE-agent write them (chat.go, and responses.go for the shape that
// mini-swe-agent takes over from another API), and the events of an ADK
// session (adk.go). Each entry of a trace becomes messages that hold all the
// entry held, under the names this library uses. conversation.go puts
// them in steps, one for each turn of a model, and pairs tool results with
// their calls. play.go is what an application would do: it writes the steps to
// a State. verify.go checks that nothing was lost or changed on the way.
package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/strict"
)

// Run is one recorded conversation.
type Run struct {
	Format  string          // "τ-bench", "SWE-agent" or "ADK"
	Pointer string          // where it is in its file: "", or as in "/3" of an array of runs
	Entries int             // the messages or events that the file has for it
	Steps   []Step          // the turns, in order
	Rest    []state.Message // what came after the last turn and its results

	entries []entry
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

// entry is a message or event of a file and the messages that it became.
type entry struct {
	pointer string
	raw     []byte
	step    int // the step that it belongs to, len(Steps) for what is in Rest
	msgs    []state.Message
}

// Error says where in a file something could not be read or played.
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

// OtherError is returned for JSON that is no trace of a known format.
type OtherError struct {
	What string // what it is instead
}

func (e *OtherError) Error() string { return "not a trace: " + e.What }

// format tells one kind of trace from all others and reads it.
type format struct {
	name string
	list string // the member that holds the entries
	is   func(members []strict.Member, entries []byte) bool
	read func(c *conversation, pointer string, raw []byte) error
}

var formats = []format{
	{"τ-bench", "traj", func([]strict.Member, []byte) bool { return true }, (*conversation).chat},
	{"SWE-agent", "history", hasAny("trajectory", "info", "environment"), (*conversation).chat},
	{"SWE-agent", "messages", hasAny("trajectory_format", "info"), (*conversation).chat}, // mini-swe-agent
	{"ADK", "events", isSession, (*conversation).event},
}

func hasAny(names ...string) func([]strict.Member, []byte) bool {
	return func(members []strict.Member, _ []byte) bool {
		for _, name := range names {
			if get(members, name) != nil {
				return true
			}
		}
		return false
	}
}

// Read returns the runs in a file: one, or as many as its array has. It returns
// an [OtherError] for JSON of another kind, and an [Error] for each part that
// cannot be read, joined; the runs beside it are returned all the same.
func Read(data []byte) ([]*Run, error) {
	if err := syntax(data); err != nil {
		return nil, err
	}
	if strict.Kind(data) != "array" {
		run, err := readRun("", data)
		if err != nil {
			return nil, err
		}
		return []*Run{run}, nil
	}
	elements, err := strict.Elements(data)
	if err != nil {
		return nil, &Error{Offset: -1, Err: err}
	}
	var runs []*Run
	var errs []error
	others := 0
	for i, element := range elements {
		run, err := readRun("/"+strconv.Itoa(i), element)
		var other *OtherError
		if errors.As(err, &other) {
			others++
		}
		if err != nil {
			errs = append(errs, err)
		}
		if run != nil {
			runs = append(runs, run)
		}
	}
	if others == len(elements) {
		return nil, &OtherError{describe(data)}
	}
	return runs, errors.Join(errs...)
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
	var at *strict.Error
	if errors.As(strict.Check(data, strict.Limits{}), &at) {
		found.Pointer = pointerOf(at.Path)
	}
	return found
}

// readRun reads a run. It returns nil and an error if there is any.
func readRun(pointer string, data []byte) (*Run, error) {
	other := error(&OtherError{describe(data)})
	if pointer != "" {
		other = &Error{pointer, -1, other}
	}
	if strict.Kind(data) != "object" {
		return nil, other
	}
	members, err := strict.Members(data)
	if err != nil {
		return nil, &Error{pointer, -1, err}
	}
	for _, f := range formats {
		list := get(members, f.list)
		if strict.Kind(list) != "array" || !f.is(members, list) {
			continue
		}
		entries, err := strict.Elements(list)
		if err != nil {
			return nil, &Error{pointer + "/" + f.list, -1, err}
		}
		c := conversation{run: &Run{Format: f.name, Pointer: pointer, Entries: len(entries)}}
		for i, raw := range entries {
			at := pointer + "/" + f.list + "/" + strconv.Itoa(i)
			if err := checkEntry(data, at, raw); err != nil {
				return nil, err
			}
			if err := f.read(&c, at, raw); err != nil {
				return nil, &Error{at, -1, err}
			}
		}
		return c.end(), nil
	}
	return nil, other
}

// checkEntry returns an error unless raw, an entry that is a part of data, is an
// object that messages can be made of without loss.
func checkEntry(data []byte, pointer string, raw []byte) error {
	if kind := strict.Kind(raw); kind != "object" {
		return &Error{pointer, -1, errors.New("want an object, got " + kind)}
	}
	err := strict.Check(raw, strict.Limits{})
	var at *strict.Error
	if !errors.As(err, &at) {
		return err
	}
	found := &Error{pointer + pointerOf(at.Path), -1, errors.New(at.Problem)}
	if problem, in, ok := strings.Cut(at.Problem, ", at byte "); ok {
		if n, err := strconv.Atoi(in); err == nil {
			// A part keeps the capacity of the whole, which tells where it is.
			found.Offset, found.Err = int64(cap(data)-cap(raw)+n), errors.New(problem)
		}
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
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// describe says what a JSON text is that is no trace.
func describe(data []byte) string {
	switch kind := strict.Kind(data); kind {
	case "array":
		elements, _ := strict.Elements(data)
		if len(elements) == 0 {
			return "an empty array"
		}
		return fmt.Sprintf("an array, and its first element is %s", describe(elements[0]))
	case "object":
	default:
		return "JSON of type " + kind
	}
	members, _ := strict.Members(data)
	if get(members, "exchanges") != nil {
		return "recorded HTTP exchanges"
	}
	if get(members, "eval_cases") != nil {
		return "an evaluation set"
	}
	const most = 4
	var names []string
	for i, m := range members {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%.40q", m.Name))
	}
	if len(names) == 0 {
		return "an empty object"
	}
	return "an object with " + strings.Join(names, ", ")
}

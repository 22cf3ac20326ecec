// Package traces reads recordings of agents and plays them through a State.
//
// There are two kinds of recordings. An exchange holds the request to a provider
// and its response (exchange.go), in a format of package provider (wire.go).
// layouts.go finds the recorded calls (httpcall.go) in a file. thread.go puts
// exchanges in steps, one for each turn of a model.
//
// A log holds a conversation in the form of an agent program: chat messages of
// τ-bench and SWE-agent, the variant of mini-swe-agent, and the events of an ADK
// session. Its entries are in the format of a provider: logs.go derives the last
// exchange from it, and puts the messages that the codec makes of each entry in
// steps.
//
// play.go does what an application would do: it writes the steps to a State.
// verify.go checks that nothing was lost or changed. roundtrip.go and
// acceptance.go put every exchange through the packages provider and
// transcript, and tally.go counts what came of it.
//
// Errors are [fault.Error]s whose Path is the place in the file.
package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Read recognises a recording by its content, as [Layouts] describes it. It
// returns the joined errors of the parts that it could not read, and everything
// else.
func Read(data []byte) (File, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var r reader
	switch {
	case isEventStream(data):
		r.readEventStream(data)
	default:
		docs, err := documents(data)
		if err != nil {
			return File{}, err
		}
		r.readDocuments(docs)
	}
	return r.end()
}

// document is a JSON value of a file.
type document struct {
	path   string // of it in the file
	json   []byte
	broken bool // it stands for a line that is not JSON
}

// documents returns the JSON values in a text: JSON itself, or the lines of
// JSONL. It returns none for another text.
func documents(data []byte) ([]document, error) {
	if json.Valid(data) {
		return []document{{path: "$", json: data}}, nil
	}
	if docs := jsonLines(data); docs != nil {
		return docs, nil
	}
	if text := strings.TrimSpace(string(data)); text == "" || strings.ContainsRune(`{["`, rune(text[0])) {
		return nil, checkSyntax(data)
	}
	return nil, nil
}

// jsonLines returns the lines of JSONL, nil if the first line with content is
// not JSON or the only one. Another line may be anything: it becomes a string,
// as in the stream of a provider that breaks off.
func jsonLines(data []byte) []document {
	var docs []document
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		doc := document{path: fmt.Sprintf("line %d", n), json: line}
		switch {
		case len(line) == 0:
			continue
		case !json.Valid(line) && len(docs) == 0:
			return nil
		case !json.Valid(line):
			doc.json, doc.broken = jsontext.AppendQuote(nil, string(line)), true
		}
		docs = append(docs, doc)
	}
	if len(docs) < 2 {
		return nil
	}
	return docs
}

// reader collects what is in a file.
type reader struct {
	file File
	logs []*Run
	talk threads
	errs []error
}

func (r *reader) end() (File, error) {
	r.file.Runs = append(r.logs, r.talk.end()...)
	return r.file, errors.Join(r.errs...)
}

func (r *reader) fail(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func (r *reader) other(what string) { r.file.Others = append(r.file.Others, what) }

// add adds an exchange.
func (r *reader) add(x *exchange) {
	x.decode()
	if x.other != "" {
		r.other(x.other)
	}
	if x.request != nil || x.response != nil || x.stream != nil {
		r.talk.add(x)
	}
}

// addCalls adds the calls that were read, and the error of the others.
func (r *reader) addCalls(calls []httpCall, err error) {
	r.fail(err)
	for i := range calls {
		if x, other := calls[i].exchange(); x != nil {
			r.add(x)
		} else {
			r.other(other)
		}
	}
	if len(calls) == 0 && err == nil {
		r.other("a recording without exchanges")
	}
}

func (r *reader) readEventStream(data []byte) {
	events := splitEvents(data)
	x := streamOnly("$", events)
	if x == nil {
		r.other("server-sent events of another API")
		return
	}
	x.streamText = data
	r.add(x)
}

// readDocuments reads the documents of a file. Several are the elements of a
// list, such as a stream or a conversation.
func (r *reader) readDocuments(docs []document) {
	switch len(docs) {
	case 0:
		r.other("a text that is no recording")
		return
	case 1:
		r.readValue(docs[0])
		return
	}
	if !r.readList("$", docs) {
		r.readEach(docs)
	}
}

func (r *reader) readEach(docs []document) {
	for _, doc := range docs {
		r.readValue(doc)
	}
}

func (r *reader) readValue(doc document) {
	if doc.broken {
		r.fail(&fault.Error{Path: doc.path, Got: "not JSON"})
		return
	}
	switch jsontext.Kind(doc.json) {
	case "object":
		r.readObject(doc)
	case "array":
		r.readArray(doc)
	default:
		r.other(describe(doc.json))
	}
}

func (r *reader) readObject(doc document) {
	o, err := jsontext.Members(doc.json)
	if err != nil {
		r.fail(atPath(doc.path, err))
		return
	}
	if l := logOf(o); l != nil {
		run, err := l.run(doc.path, o)
		r.fail(err)
		if err == nil {
			r.logs = append(r.logs, run)
		}
		return
	}
	if calls, ok, err := callsIn(doc.path, o); ok {
		r.addCalls(calls, err)
		return
	}
	if what := foreignKind(o); what != "" {
		r.other(what)
	} else if x := responseOnly(doc.path, o, doc.json); x != nil {
		r.add(x)
	} else if x := requestOnly(doc.path, o, doc.json); x != nil {
		r.add(x)
	} else {
		r.other(describe(doc.json))
	}
}

// readArray reads a list, or an array of which some element is a recording. If
// one element is a log, all must be logs.
func (r *reader) readArray(doc document) {
	list, err := jsontext.Elements(doc.json)
	if err != nil {
		r.fail(atPath(doc.path, err))
		return
	}
	docs := make([]document, len(list))
	for i, element := range list {
		docs[i] = document{path: jsontext.Index(doc.path, i), json: element}
	}
	if r.readLogs(docs) || r.readList(doc.path, docs) {
		return
	}
	if slices.ContainsFunc(docs, isRecording) {
		r.readEach(docs)
		return
	}
	r.other(describe(doc.json))
}

// readList reads the events of a stream or the messages of a conversation, and
// reports whether the documents are either.
func (r *reader) readList(path string, docs []document) bool {
	list, events := make([][]byte, len(docs)), make([][]byte, len(docs))
	for i, doc := range docs {
		list[i], events[i] = doc.json, eventOf(doc.json)
	}
	x := streamOnly(path, events)
	if x == nil {
		x = messagesOnly(path, list)
	}
	if x != nil {
		r.add(x)
	}
	return x != nil
}

// readLogs reads an array of logs, and reports whether it is one.
func (r *reader) readLogs(docs []document) bool {
	isLog := func(doc document) bool { return logOf(loose.Members(doc.json)) != nil }
	if !slices.ContainsFunc(docs, isLog) {
		return false
	}
	for _, doc := range docs {
		if isLog(doc) {
			r.readObject(doc)
		} else {
			r.fail(&fault.Error{Path: doc.path, Got: "not a trace: " + describe(doc.json)})
		}
	}
	return true
}

// isRecording reports whether an element of an array is a call or a body.
func isRecording(doc document) bool {
	o := loose.Members(doc.json)
	if isCall(o) || wireOfRequest(o) != nil {
		return true
	}
	return slices.ContainsFunc(wires, func(w *wire) bool { return w.isResponse(o) })
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

// atPath returns err as the error of a place in a file. An error of a part of
// that place gets the path of the part.
func atPath(path string, err error) error {
	switch err.(type) {
	case *fault.Error, *fault.LimitError:
		return fault.Under(path, err)
	}
	return &fault.Error{Path: path, Got: err.Error(), Cause: err}
}

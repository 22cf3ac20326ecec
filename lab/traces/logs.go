package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/lab/traces/loose"
)

// logFormat recognises one kind of log. A log does not contain the requests of
// the agent program, but its entries are in the format of the provider, so the
// last request can be rebuilt. If the log ends with a turn of the model, that
// turn is the response.
type logFormat struct {
	kind string
	list string // the member that holds the entries
	is   func(o jsontext.Object) bool
	api  func(entries [][]byte) (w *wire, read func(raw []byte) logEntry)
}

// logEntry is an entry of a log in the words of the API.
type logEntry struct {
	sent   [][]byte // what a request has of it; a note of the agent program has nothing
	agent  string   // whose turn it is
	answer []byte   // the response in which the turn came, nil if it is none of the model's
}

var logFormats = []logFormat{
	{"τ-bench", "traj", func(jsontext.Object) bool { return true }, chatLog},
	{"SWE-agent", "history", loose.Has("trajectory", "info", "environment"), chatLog},
	{"mini-swe-agent", "messages", loose.Has("trajectory_format", "info"), chatLog},
	{"ADK session", "events", isSession, adkLog},
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

// isSession reports whether an object with events is an ADK session.
func isSession(o jsontext.Object) bool {
	events := loose.Elements(o.Get("events"))
	if len(events) == 0 {
		return loose.Has("app_name", "appName", "user_id", "userId")(o)
	}
	return loose.Members(events[0]).Get("author") != nil
}

// chatLog reads chat messages, as in τ-bench and SWE-agent, or the variant of
// mini-swe-agent, which has turns of the Responses API.
func chatLog(entries [][]byte) (*wire, func(raw []byte) logEntry) {
	for _, raw := range entries {
		if isResponse(loose.Members(raw)) {
			return openAIResponses, responsesEntry
		}
	}
	return openAIChat, chatEntry
}

// chatEntry reads a chat message. Roles that the API does not have are those of
// notes. One message of SWE-agent may be the result of several calls.
func chatEntry(raw []byte) (e logEntry) {
	o := loose.Members(raw)
	switch role := loose.Text(o.Get("role")); role {
	case "tool":
		if loose.Text(o.Get("tool_call_id")) != "" || len(loose.Elements(o.Get("tool_call_ids"))) == 0 {
			return logEntry{sent: [][]byte{raw}}
		}
		for _, id := range loose.Elements(o.Get("tool_call_ids")) {
			e.sent = append(e.sent, o.Without("tool_call_ids", "tool_call_id").WithString("tool_call_id", loose.Text(id)).JSON())
		}
	case "assistant":
		e.agent = role
		for _, name := range []string{"name", "agent"} {
			if by := loose.Text(o.Get(name)); by != "" {
				e.agent = by
			}
		}
		choice := jsontext.Object{}.With("message", raw).JSON()
		e.answer = jsontext.Object{}.With("choices", jsontext.Array([][]byte{choice})).JSON()
		e.sent = [][]byte{raw}
	case "system", "developer", "user", "function":
		e.sent = [][]byte{raw}
	}
	return e
}

// responsesEntry reads a turn of the Responses API, whose items later requests
// repeat, or an item.
func responsesEntry(raw []byte) (e logEntry) {
	o := loose.Members(raw)
	if isResponse(o) {
		return logEntry{sent: loose.Elements(o.Get("output")), agent: "assistant", answer: raw}
	}
	switch loose.Text(o.Get("role")) {
	case "system", "developer", "user", "assistant":
		e.sent = [][]byte{raw}
	case "":
		if loose.Text(o.Get("type")) == "function_call_output" {
			e.sent = [][]byte{raw}
		}
	}
	return e
}

// isResponse recognises the turns of the Responses API. They have no role.
func isResponse(o jsontext.Object) bool {
	return loose.Text(o.Get("role")) == "" && jsontext.Kind(o.Get("output")) == "array"
}

// adkLog reads the events of an ADK session: their contents, without partial
// events of a stream.
func adkLog([][]byte) (*wire, func(raw []byte) logEntry) {
	return gemini, func(raw []byte) (e logEntry) {
		o := loose.Members(raw)
		content := loose.Members(o.Get("content"))
		if parts := loose.Elements(content.Get("parts")); len(parts) == 0 || string(o.Get("partial")) == "true" {
			return e
		}
		e.sent = [][]byte{o.Get("content")}
		if author := loose.Text(o.Get("author")); author != "user" {
			e.agent = author
			if loose.Text(content.Get("role")) == "model" {
				candidate := jsontext.Object{}.With("content", o.Get("content")).JSON()
				e.answer = jsontext.Object{}.With("candidates", jsontext.Array([][]byte{candidate})).JSON()
			}
		}
		return e
	}
}

// run reads a log, the value at path.
func (l *logFormat) run(path string, o jsontext.Object) (*Run, error) {
	path = jsontext.Path(path, l.list)
	list, err := jsontext.Elements(o.Get(l.list))
	if err != nil {
		return nil, atPath(path, err)
	}
	w, read := l.api(list)
	run := &Run{Kind: l.kind, Path: path, Entries: len(list)}
	x := &exchange{wire: w, requestPath: path, responsePath: path, outcome: outcomeAccepted}
	agent := ""
	var sent [][]byte // before the last entry that says something
	var last logEntry
	for i, raw := range list {
		at := jsontext.Index(path, i)
		if err := checkEntry(raw); err != nil {
			return nil, atPath(at, err)
		}
		e := read(raw)
		if e.sent == nil {
			continue
		}
		if agent != "" && e.agent != "" && agent != e.agent && w == gemini {
			// Each agent was sent the output of the others in a different form,
			// so no provider has accepted exactly this request.
			x.outcome = outcomeUnsent
		}
		if e.agent != "" {
			agent = e.agent
		}
		sent, last = append(sent, last.sent...), e
		said, _ := w.format.DecodeRequest(requestOf(w, e.sent)) // an error is one of the whole request, too
		run.addMessages(at, raw, e.agent, said.Messages)
	}
	if x.response = last.answer; last.answer == nil {
		sent = append(sent, last.sent...)
	}
	x.request = requestOf(w, sent)
	x.decode()
	run.exchanges = []*exchange{x}
	return run, nil
}

// addMessages adds the messages of an entry. Those of a model are a step, and
// results directly behind a step belong to it.
func (run *Run) addMessages(path string, raw []byte, agent string, msgs []state.Message) {
	own := false // the last step is of the entry
	for _, m := range msgs {
		last := len(run.Steps) - 1
		result, isResult := m.(state.ToolResultMessage)
		switch {
		case isResult && last >= 0 && len(run.Rest) == 0:
			run.Steps[last].Results = append(run.Steps[last].Results, result)
		case !origin.FromAssistant(m):
			run.Rest = append(run.Rest, m)
		case own && len(run.Rest) == 0 && len(run.Steps[last].Results) == 0:
			run.Steps[last].Output = append(run.Steps[last].Output, m)
		default:
			if agent == "" {
				agent = "assistant"
			}
			run.Steps = append(run.Steps, Step{Path: path, Said: run.Rest, Agent: agent, Output: []state.Message{m}, Raw: string(raw)})
			run.Rest, own = nil, true
		}
	}
}

func requestOf(w *wire, entries [][]byte) []byte {
	return jsontext.Object{}.With(w.conversation, jsontext.Array(entries)).JSON()
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

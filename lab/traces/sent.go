package traces

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/lab/traces/loose"
)

// A log does not contain the requests of the agent program, but its entries are
// in the format of the provider, so the last request can be rebuilt. If the log
// ends with a turn of the model, that turn is the response. The checks of
// exchanges therefore apply to logs.

// chatSent returns the exchange of a log of chat messages. Entries with a role
// that the API does not have are notes of the agent program, which it does not
// send.
func chatSent(run *Run, entries [][]byte) *exchange {
	for _, raw := range entries {
		if isResponse(loose.Members(raw)) {
			return responsesSent(run, entries)
		}
	}
	var sent [][]byte
	var last jsontext.Object
	for _, raw := range entries {
		o := loose.Members(raw)
		switch loose.Text(o.Get("role")) {
		case "tool":
			if loose.Text(o.Get("tool_call_id")) != "" {
				sent = append(sent, raw)
				break
			}
			// One entry of SWE-agent may be the result of several calls.
			for _, id := range answeredIDs(o) {
				sent = append(sent, o.Without("tool_call_ids", "tool_call_id").WithString("tool_call_id", id).JSON())
			}
		case "system", "developer", "user", "assistant", "function":
			sent = append(sent, raw)
		default:
			continue
		}
		last = o
	}
	x := &exchange{wire: openAIChat, requestPath: run.Path, responsePath: run.Path, outcome: outcomeAccepted}
	if loose.Text(last.Get("role")) == "assistant" {
		choice := jsontext.Object{}.With("message", sent[len(sent)-1]).JSON()
		x.response = jsontext.Object{}.With("choices", jsontext.Array([][]byte{choice})).JSON()
		sent = sent[:len(sent)-1]
	}
	x.request = requestOf(openAIChat, sent)
	return x
}

// responsesSent is chatSent for the Responses API. Its turns are lists of
// items, which later requests repeat.
func responsesSent(run *Run, entries [][]byte) *exchange {
	x := &exchange{wire: openAIResponses, requestPath: run.Path, responsePath: run.Path, outcome: outcomeAccepted}
	var sent, turn [][]byte
	for _, raw := range entries {
		o := loose.Members(raw)
		role := loose.Text(o.Get("role"))
		switch {
		case isResponse(o):
			sent = append(sent, turn...)
			turn, x.response = loose.Elements(o.Get("output")), raw
			continue
		case isResponseResult(o), role == "system", role == "developer", role == "user", role == "assistant":
			sent = append(append(sent, turn...), raw)
			turn, x.response = nil, nil
		}
	}
	x.request = requestOf(openAIResponses, sent)
	return x
}

// adkSent returns the exchange of an ADK session: the contents of its events,
// without partial events of a stream. If several agents took part, each was
// sent the output of the others in a different form, so no provider has
// accepted exactly this request.
func adkSent(run *Run, entries [][]byte) *exchange {
	x := &exchange{wire: gemini, requestPath: run.Path, responsePath: run.Path, outcome: outcomeAccepted}
	agent := ""
	var sent [][]byte
	answer := false // whether the last content is the model's
	for _, raw := range entries {
		o := loose.Members(raw)
		content := loose.Members(o.Get("content"))
		if parts := loose.Elements(content.Get("parts")); len(parts) == 0 || string(o.Get("partial")) == "true" {
			continue
		}
		sent = append(sent, o.Get("content"))
		answer = false
		if author := loose.Text(o.Get("author")); author != "user" {
			if agent != "" && agent != author {
				x.outcome = outcomeUnsent
			}
			agent = author
			answer = loose.Text(content.Get("role")) == "model"
		}
	}
	if answer {
		candidate := jsontext.Object{}.With("content", sent[len(sent)-1]).JSON()
		x.response = jsontext.Object{}.With("candidates", jsontext.Array([][]byte{candidate})).JSON()
		sent = sent[:len(sent)-1]
	}
	x.request = requestOf(gemini, sent)
	return x
}

func requestOf(w *wire, entries [][]byte) []byte {
	return jsontext.Object{}.With(w.conversation, jsontext.Array(entries)).JSON()
}

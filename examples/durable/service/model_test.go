package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// script stands for a model. It wants a refund for each message with that word, and
// tells the user what has come of it.
func script(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, `{"error":{"message":"want messages"}}`, http.StatusBadRequest)
		return
	}
	last, calls := in.Messages[len(in.Messages)-1], 0
	for _, m := range in.Messages {
		if m.Role == "tool" {
			calls++
		}
	}
	switch {
	case last.Role == "tool":
		say(w, "It is done: "+last.Content)
	case strings.Contains(strings.ToLower(last.Content), "refund"):
		function := object{"name": "refund", "arguments": `{"Order":"W1"}`}
		call := object{"index": 0, "id": fmt.Sprint("call_", calls+1), "type": "function", "function": function}
		send(w, object{"tool_calls": []object{call}}, nil)
		send(w, object{}, "tool_calls")
	default:
		say(w, "Which order is it about?")
	}
}

type object map[string]any

// say streams a text by its words.
func say(w http.ResponseWriter, text string) {
	for _, word := range strings.SplitAfter(text, " ") {
		send(w, object{"content": word}, nil)
		time.Sleep(50 * time.Millisecond)
	}
	send(w, object{}, "stop")
}

// send sends an event of a stream, and the end of the stream with a reason.
func send(w http.ResponseWriter, delta object, reason any) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk, _ := json.Marshal(object{"id": "1", "choices": []object{{"delta": delta, "finish_reason": reason}}})
	fmt.Fprintf(w, "data: %s\n\n", chunk)
	if reason != nil {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
	_ = http.NewResponseController(w).Flush()
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"
)

// printed is a bank that believes what it is told.
func printed(_ context.Context, key string, in order) error {
	fmt.Printf("refunds %v for %s with key %s\n", in.Amount, in.Order, key)
	return nil
}

// modelURL returns the URL of the API of OpenAI if there is a key, otherwise that
// of a server with a script.
func modelURL() string {
	if os.Getenv("OPENAI_API_KEY") != "" {
		return cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")
	}
	return httptest.NewServer(http.HandlerFunc(script)).URL
}

// script stands for a model. It wants to refund 120 euros for each message with
// the word refund, and tells the user what has come of it.
func script(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, `{"error":{"message":"want messages"}}`, http.StatusBadRequest)
		return
	}
	n := len(in.Messages)
	if n > 1 && strings.HasPrefix(in.Messages[n-1].Content, "<context>") { // behind results
		n--
	}
	said, _, _ := strings.Cut(in.Messages[n-1].Content, "\n\n<context>")
	switch {
	case in.Messages[n-1].Role == "tool":
		say(w, "It is done: "+said)
	case strings.Contains(strings.ToLower(said), "refund"):
		calls := 0
		for _, m := range in.Messages {
			if m.Role == "tool" {
				calls++
			}
		}
		function := object{"name": "refund", "arguments": `{"order":"#W1","amount":120}`}
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

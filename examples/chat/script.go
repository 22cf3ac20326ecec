package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// script stands for a model behind Chat Completions. Each line of the user is a
// task that it adds.
func script(w http.ResponseWriter, req *http.Request) {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, `{"error":{"message":"want messages"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	n := len(body.Messages)
	if n > 1 && strings.HasPrefix(body.Messages[n-1].Content, "<context>") { // behind results
		n--
	}
	if last := body.Messages[n-1]; last.Role == "user" {
		task, _, _ := strings.Cut(last.Content, "\n\n<context>")
		arguments, _ := json.Marshal(object{"task": task}) // texts only
		call := object{"name": "add_task", "arguments": string(arguments)}
		id := fmt.Sprint("call_", len(body.Messages))
		send(w, object{"tool_calls": []object{{"index": 0, "id": id, "type": "function", "function": call}}}, "tool_calls")
		return
	}
	send(w, object{"content": "I have noted it."}, "stop")
}

type object map[string]any

func send(w http.ResponseWriter, delta object, reason string) {
	for _, choice := range []object{{"delta": delta}, {"delta": object{}, "finish_reason": reason}} {
		chunk, _ := json.Marshal(object{"id": "1", "choices": []object{choice}})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

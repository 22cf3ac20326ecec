package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// shop has the orders.
var shop = map[string]order{
	"#W1001": {"Desk lamp", 39.90, "delivered on Monday"},
	"#W1002": {"Espresso machine", 249, "delivered, reported as broken"},
	"#W1003": {"Walnut bookshelf", 189.50, "on its way, arrives on Friday"},
}

// modelURL returns the URL of the API of OpenAI if there is a key, otherwise that
// of a server with a script.
func modelURL(pace time.Duration) string {
	if os.Getenv("OPENAI_API_KEY") != "" {
		return cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")
	}
	return httptest.NewServer(script(pace)).URL
}

// script stands for a model, with a pause between words. It looks up orders and
// refunds them. A message with the word "fail" makes it fail, at first. Its answer to
// one with "essay" is cut off, and it refuses one with "poem".
type script time.Duration

// failed has the messages with which it has failed.
var failed sync.Map

var (
	orderNumber = regexp.MustCompile(`#W\d+`)
	address     = regexp.MustCompile(`[\w.+-]+@[\w.-]+`)
)

func (s script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role    string
			Content content
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, `{"error":{"message":"want messages"}}`, http.StatusBadRequest)
		return
	}
	calls, number := 0, ""
	for _, m := range in.Messages {
		if m.Role == "tool" {
			calls++
		}
		number = cmp.Or(orderNumber.FindString(string(m.Content)), number) // the one that was named last
	}
	last := in.Messages[len(in.Messages)-1]
	said := strings.ToLower(string(last.Content))
	found := shop[number]
	id := fmt.Sprint("call_", calls+1)
	if strings.Contains(said, "fail") && last.Role == "user" {
		if _, before := failed.LoadOrStore(said, true); !before {
			http.Error(w, `{"error":{"message":"the model is out of order"}}`, http.StatusBadRequest)
			return
		}
	}
	switch {
	case last.Role == "tool" && strings.Contains(said, "refused"):
		s.say(w, "Then I leave it as it is. Is there anything else that I can do?")
	case last.Role == "tool" && strings.Contains(said, "euros"):
		told := ""
		if to := address.FindString(said); to != "" {
			told = "\n\nI write to " + to + " when they are there."
		}
		s.say(w, fmt.Sprintf("Done: **%.2f euros** for %s are on their way to your account. It takes two or three working days.%s", found.Price, number, told))
	case last.Role == "tool" && found.Item != "":
		s.say(w, fmt.Sprintf("**%s** is the %s for %.2f euros. It is %s.\n\nDo you want me to refund it?", number, strings.ToLower(found.Item), found.Price, found.Status))
	case last.Role == "tool":
		s.say(w, fmt.Sprintf("The shop knows no order %s. Please look at the number again.", number))
	case strings.Contains(said, "refund") && found.Item != "":
		s.call(w, id, "refund", fmt.Sprintf(`{"order":%q,"amount":%v}`, number, found.Price))
	case orderNumber.MatchString(string(last.Content)):
		s.call(w, id, "look_up_order", fmt.Sprintf(`{"order":%q}`, number))
	case strings.Contains(said, picture):
		s.say(w, "Thank you for the picture. Which order does it show?")
	case strings.Contains(said, "essay"):
		s.say(w, "Orders are as old as shops. The first of them", "length")
	case strings.Contains(said, "poem"):
		send(w, object{}, "content_filter")
	default:
		s.say(w, "I can\n\n- look up **orders**, and\n- refund them.\n\nWhich order is it about? Its number looks like `#W1001`.")
	}
}

// picture stands for one in the text of a message.
const picture = "[picture]"

// content is the text of a message, which may be a list of parts.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var parts []struct{ Text string }
	if json.Unmarshal(data, &parts) != nil {
		return json.Unmarshal(data, (*string)(c))
	}
	for _, p := range parts {
		*c += content(cmp.Or(p.Text, picture)) + " "
	}
	return nil
}

type object map[string]any

func (s script) call(w http.ResponseWriter, id, name, arguments string) {
	function := object{"name": name, "arguments": arguments}
	send(w, object{"tool_calls": []object{{"index": 0, "id": id, "type": "function", "function": function}}}, nil)
	send(w, object{}, "tool_calls")
}

// say streams a text by its words. The answer ends well, unless a reason is given.
func (s script) say(w http.ResponseWriter, text string, reason ...string) {
	for _, word := range strings.SplitAfter(text, " ") {
		send(w, object{"content": word}, nil)
		time.Sleep(time.Duration(s))
	}
	send(w, object{}, append(reason, "stop")[0])
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

package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// InferenceResult is one call of a model by an agent, and its outcome.
type InferenceResult struct {
	ID        string              `json:"id,omitempty"`
	Agent     string              `json:"agent"`
	Input     string              `json:"input"`
	Prompt    []Message           `json:"prompt"`     // the agent's own instructions
	History   []Message           `json:"history"`    // the conversation that was sent along
	Output    []Message           `json:"output"`     // what the model answered
	ToolCalls []ToolResultMessage `json:"tool_calls"` // the results of the calls in Output
	// the provider's response, byte for byte, without comments of a stream
	Raw       string    `json:"raw"`
	Stop      Stop      `json:"stop,omitempty"`      // how the answer has ended; empty if that is not known
	StopWord  string    `json:"stop_word,omitempty"` // the provider's own word for it
	Usage     Usage     `json:"usage,omitzero"`      // what the response says of its cost
	StartedAt time.Time `json:"started_at,omitzero"` // when the call began; zero if that is not known
	CreatedAt time.Time `json:"created_at"`          // when it ended, or when the result was appended
}

// Usage is the cost of a call of a model in tokens. A count is 0 if it was not
// reported. Input is the whole prompt, with what was read from and written to a
// cache, and Output is all that the model has made, with its reasoning.
type Usage struct {
	Input      int `json:"input,omitempty"`
	Output     int `json:"output,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`  // of Input
	CacheWrite int `json:"cache_write,omitempty"` // of Input
	Reasoning  int `json:"reasoning,omitempty"`   // of Output
}

// MarshalJSON encodes the result. Absent messages are empty lists.
func (r InferenceResult) MarshalJSON() ([]byte, error) {
	type plain InferenceResult
	r.Prompt, r.History = append([]Message{}, r.Prompt...), append([]Message{}, r.History...)
	r.Output, r.ToolCalls = append([]Message{}, r.Output...), append([]ToolResultMessage{}, r.ToolCalls...)
	return json.Marshal(plain(r))
}

// UnmarshalJSON decodes a result as MarshalJSON has written it.
func (r *InferenceResult) UnmarshalJSON(data []byte) error {
	type plain InferenceResult
	var in struct {
		*plain
		Prompt    json.RawMessage `json:"prompt"`
		History   json.RawMessage `json:"history"`
		Output    json.RawMessage `json:"output"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	out := plain{}
	in.plain = &out
	if err := json.Unmarshal(data, &in); err != nil {
		return within("result", err)
	}
	var called []Message
	for _, part := range []struct {
		name string
		data json.RawMessage
		dst  *[]Message
	}{
		{"prompt", in.Prompt, &out.Prompt}, {"history", in.History, &out.History},
		{"output", in.Output, &out.Output}, {"tool_calls", in.ToolCalls, &called},
	} {
		if part.data == nil {
			continue
		}
		msgs, err := DecodeMessages(part.data)
		if err != nil {
			return within("result: "+part.name, err)
		}
		*part.dst = msgs
	}
	for i, m := range called {
		called, ok := m.(ToolResultMessage)
		if !ok {
			return &TypeError{
				Field: "result", Path: fmt.Sprintf("$.tool_calls[%d]", i), Want: "a tool result", Got: fault.Quote(m.Type()),
			}
		}
		out.ToolCalls = append(out.ToolCalls, called)
	}
	*r = InferenceResult(out)
	return nil
}

// check returns what is wrong with a result, which may have maxBytes; 0 is no
// limit.
func (r *InferenceResult) check(maxBytes int) error {
	for _, text := range []struct{ name, text string }{{"id", r.ID}, {"agent", r.Agent}, {"input", r.Input}, {"stop", string(r.Stop)}, {"stop_word", r.StopWord}} {
		if !utf8.ValidString(text.text) {
			return &TypeError{Field: historyName, Path: "$." + text.name, Want: "valid UTF-8", Got: "other bytes"}
		}
	}
	for _, part := range []struct {
		name string
		msgs []Message
	}{{"prompt", r.Prompt}, {"history", r.History}, {"output", r.Output}} {
		for i, m := range part.msgs {
			if !isMessage(m) {
				return &TypeError{
					Field: historyName, Path: fmt.Sprintf("$.%s[%d]", part.name, i), Want: "a message",
					Got: fmt.Sprintf("%T", m),
				}
			}
			if err := m.(bodied).checkCalls(); err != nil {
				return typedError(historyName, err)
			}
		}
	}
	calls := 0
	for _, m := range r.Output {
		if m, ok := m.(ToolCallMessage); ok {
			calls += len(m.toolCalls())
		}
	}
	if err := checkCalls("$.output", calls); err != nil {
		return typedError(historyName, err)
	}
	for i, m := range r.ToolCalls {
		if m.messageBody == nil {
			return &TypeError{
				Field: historyName, Path: fmt.Sprintf("$.tool_calls[%d]", i), Want: "a message", Got: "the zero message",
			}
		}
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"started_at", r.StartedAt}, {"created_at", r.CreatedAt}} {
		if y := at.time.Year(); y < 0 || y > 9999 {
			return &TypeError{Field: historyName, Path: "$." + at.name, Want: "a year from 0 to 9999", Got: strconv.Itoa(y)}
		}
	}
	if u := r.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning) < 0 {
		return &TypeError{Field: historyName, Path: "$.usage", Want: "counts of at least 0", Got: "a negative one"}
	}
	return checkResultSizes(maxBytes, r.size(), messagesSize(r.Prompt), messagesSize(r.History))
}

// checkResultSizes returns an error if a part of a result has more than
// maxBytes: its size, its prompt or its history. A prompt or history takes
// little memory in a state that has its messages, but all of it when it is
// read.
func checkResultSizes(maxBytes int, sizes ...int) error {
	if size := slices.Max(sizes); maxBytes > 0 && size > maxBytes {
		return &LimitError{Name: "ValueBytes", Field: historyName, Limit: maxBytes, Got: size}
	}
	return nil
}

func messagesSize(msgs []Message) int {
	n := 0
	for _, m := range msgs {
		n += m.size()
	}
	return n
}

// size is what a result counts for towards limits.
func (r *InferenceResult) size() int {
	n := len(r.ID) + len(r.Agent) + len(r.Input) + len(r.Stop) + len(r.StopWord) + len(r.Raw) + messagesSize(r.Output)
	for _, m := range r.ToolCalls {
		n += m.size()
	}
	return n
}

// setTimes makes the times of a result those of its stored form: in UTC and
// without a monotonic clock.
func (r *InferenceResult) setTimes() {
	r.StartedAt, r.CreatedAt = r.StartedAt.UTC().Round(0), r.CreatedAt.UTC().Round(0)
}

// equal reports whether two results are the same. Messages are compared by
// their text.
func (r InferenceResult) equal(o InferenceResult) bool {
	return r.ID == o.ID && r.Agent == o.Agent && r.Input == o.Input && r.Raw == o.Raw && r.Usage == o.Usage &&
		r.Stop == o.Stop && r.StopWord == o.StopWord &&
		r.StartedAt.Equal(o.StartedAt) && r.CreatedAt.Equal(o.CreatedAt) &&
		slices.EqualFunc(r.Prompt, o.Prompt, sameMessage) && slices.EqualFunc(r.History, o.History, sameMessage) &&
		slices.EqualFunc(r.Output, o.Output, sameMessage) &&
		slices.EqualFunc(r.ToolCalls, o.ToolCalls, func(a, b ToolResultMessage) bool { return sameMessage(a, b) })
}

func sameMessage(a, b Message) bool { return a == b || a.hash() == b.hash() && a.Raw() == b.Raw() }

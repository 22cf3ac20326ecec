package view

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// resultsData is the data of the page with the calls of models.
type resultsData struct {
	As     string      `json:"as,omitempty"`
	Rows   []resultRow `json:"results"` // the newest first
	Window window      `json:"page"`
	// Input and Output are the tokens of the rows, as far as they are known.
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// resultRow is one call of a model.
type resultRow struct {
	Index   int       `json:"index"`
	Agent   text      `json:"agent"`
	Usage   *usageRow `json:"usage,omitempty"` // nil if it is not known
	Sent    int       `json:"sent_bytes"`      // prompt and history
	Bytes   int       `json:"bytes"`           // output, tool results and raw response
	Calls   int       `json:"calls"`           // of tools
	Started time.Time `json:"started_at,omitzero"`
	Created time.Time `json:"created_at"`
	Stop    text      `json:"stop,omitempty"`
}

// usageRow is what a response says of itself and its cost.
type usageRow struct {
	Format string `json:"format,omitempty"`
	Model  text   `json:"model"`
	state.Usage
}

// Took is the duration of the call, 0 if its start is not known.
func (r resultRow) Took() time.Duration {
	if r.Started.IsZero() {
		return 0
	}
	return max(0, r.Created.Sub(r.Started))
}

// Results lists the calls of models, the newest first.
func (src *Source) Results(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	history := s.history(q)
	data := resultsData{As: visible(q.Get("as"), false), Rows: []resultRow{}}
	if data.Window, err = q.window("skip", history.Len()); err != nil {
		return nil, err
	}
	for i := data.Window.From; i < data.Window.To; i++ {
		index := data.Window.Count - 1 - i
		r, _ := history.At(index)
		row := newResultRow(s.mask, index, r)
		if row.Usage != nil {
			data.Input += row.Usage.Input
			data.Output += row.Usage.Output
		}
		data.Rows = append(data.Rows, row)
	}
	return s.page("results", "Model calls", "conversation", data, data.Window.From == 0), nil
}

// history returns the results that the request may show.
func (s *shown) history(q Query) *state.History {
	handle := s.view.State()
	if as := q.Get("as"); as != "" {
		handle = handle.As(as)
	}
	return handle.History()
}

func newResultRow(mask *masker, index int, r state.InferenceResult) resultRow {
	row := resultRow{
		Index: index, Agent: mask.fit(r.Agent, labelBytes, false).Text, Started: r.StartedAt, Created: r.CreatedAt,
		Sent: bytesOf(r.Prompt) + bytesOf(r.History), Bytes: len(r.Raw) + bytesOf(r.Output),
	}
	for _, m := range r.ToolCalls {
		row.Bytes += len(m.Raw())
	}
	stop := ""
	for _, m := range r.Output {
		switch m := m.(type) {
		case state.TextMessage:
			stop = m.StopReason()
		case state.ToolCallMessage:
			stop = m.StopReason()
			row.Calls += len(m.Calls())
		}
	}
	said, ok := provider.Summarize(r.Raw)
	if counted := r.Usage != (state.Usage{}); ok || counted {
		row.Usage = &usageRow{Model: mask.fit(said.Model, labelBytes, false).Text, Usage: said.Usage}
		if ok {
			row.Usage.Format = said.Format.String()
		}
		if counted {
			row.Usage.Usage = r.Usage
		}
		stop = cmp.Or(said.StopReason, stop)
	}
	if r.Stop != "" {
		stop = string(r.Stop)
		if word := r.StopWord; word != "" && r.Stop != state.StopEnd && r.Stop != state.StopCalls {
			stop += ": " + word
		}
	}
	row.Stop = mask.fit(stop, labelBytes, false).Text
	return row
}

func bytesOf(msgs []state.Message) int {
	n := 0
	for _, m := range msgs {
		n += len(m.Raw())
	}
	return n
}

// resultData is the data of the page about one call of a model.
type resultData struct {
	resultRow
	ID    text  `json:"id,omitempty"`
	Input value `json:"input"`
	// Prompt, History and Raw are there if the request asks for them, and New
	// otherwise.
	Prompt  *chat  `json:"prompt,omitempty"`
	History *chat  `json:"history,omitempty"`
	New     *chat  `json:"new,omitempty"` // the messages of the history that the previous result did not have
	Output  chat   `json:"output"`        // with the tool results
	Raw     *value `json:"raw,omitempty"`
	// Previous is the result of the same agent before this one, -1 if there is
	// none. Kept and Gone are the numbers of the messages of its history that this
	// one begins with, and that it does not have.
	Previous int `json:"previous"`
	Kept     int `json:"kept_messages"`
	Gone     int `json:"gone_messages"`

	PromptCount  int  `json:"prompt_messages"`
	HistoryCount int  `json:"history_messages"`
	RawBytes     int  `json:"raw_bytes"`
	Last         int  `json:"last"` // the index of the newest result
	Blind        bool `json:"blind,omitempty"`
}

// Before and After are the indexes of the neighbouring results.
func (data resultData) Before() int { return data.Index - 1 }
func (data resultData) After() int  { return data.Index + 1 }

// Result shows one call of a model.
func (src *Source) Result(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	history := s.history(q)
	index, err := strconv.Atoi(q.Get("n"))
	if err != nil {
		return nil, errNoValue
	}
	r, ok := history.At(index)
	if !ok || index < 0 {
		return nil, errNoValue
	}
	before, ok, err := q.number("before")
	if err != nil {
		return nil, err
	}
	if !ok || before > math.MaxInt {
		before = math.MaxInt
	}
	data := resultData{
		resultRow: newResultRow(s.mask, index, r), ID: s.mask.fit(r.ID, labelBytes, false).Text,
		Previous: -1, PromptCount: len(r.Prompt), HistoryCount: len(r.History), RawBytes: len(r.Raw),
		Last: history.Len() - 1, Blind: s.mask.Blind,
	}
	open := q.Get("open")
	data.Input = s.mask.fit(r.Input, previewBytes, true)
	data.compare(history, r)
	part, _, _ := strings.Cut(open, ".")
	chatOf := func(name string, msgs []state.Message, before int) *chat {
		v := newChatView(s.mask, msgs, nil, name+".", open)
		v.spent = chatBytes * 3 / 4 // two chats share the page
		if part == "raw" {
			v.spent = chatBytes
		}
		shown := v.page(before)
		return &shown
	}
	data.Output = *chatOf("output", outputOf(r), math.MaxInt)
	switch part {
	case "prompt":
		data.Prompt = chatOf("prompt", r.Prompt, int(before))
	case "history":
		data.History = chatOf("history", r.History, int(before))
	case "raw":
		raw := s.mask.open(state.JSON(r.Raw))
		data.Raw = &raw
	default:
		data.New = chatOf("new", r.History[data.Kept:], int(before))
	}
	return s.page("result", "Model call", "conversation", data, false), nil
}

// outputOf returns the output of a result and the results of its calls.
func outputOf(r state.InferenceResult) []state.Message {
	msgs := append([]state.Message{}, r.Output...)
	for _, m := range r.ToolCalls {
		msgs = append(msgs, m)
	}
	return msgs
}

// compare finds the previous result of the agent and what the two histories have
// in common.
func (data *resultData) compare(history *state.History, r state.InferenceResult) {
	for i := data.Index - 1; i >= 0; i-- {
		previous, _ := history.At(i)
		if previous.Agent != r.Agent {
			continue
		}
		data.Previous = i
		for data.Kept < len(r.History) && data.Kept < len(previous.History) && r.History[data.Kept].Equal(previous.History[data.Kept]) {
			data.Kept++
		}
		data.Gone = len(previous.History) - data.Kept
		return
	}
}

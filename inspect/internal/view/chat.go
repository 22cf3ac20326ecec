package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/transcript"
)

const (
	// chatBytes is about the length of the HTML of all texts that one chat shows.
	chatBytes = 80 << 10
	// minPreview is the length of the shortest preview in bytes.
	minPreview = 96
	// objectionBytes is about the length of the HTML of a objection at its message.
	objectionBytes = 300
	// labelBytes is the length of a role, an id or the name of a tool.
	labelBytes = 100
	// maxChatCalls is the number of tool calls that one chat shows.
	maxChatCalls = 80
)

// chat is a part of a conversation as a page shows it: what belongs together is
// one turn, and each call has its result beside it.
type chat struct {
	// Name is the beginning of the parameter open for a message of this chat.
	Name  string `json:"-"`
	Count int    `json:"count"` // of the messages of the whole conversation
	Turns []turn `json:"turns"`
	// Older and Newer are the parameter before of the neighbouring pages; -1 if
	// there is none. Newer is the count if the page is the newest one.
	Older int `json:"older"`
	Newer int `json:"newer"`
}

// Part is the parameter open for the chat itself.
func (c chat) Part() string { return strings.TrimSuffix(c.Name, ".") }

// turn are messages that a provider accepts or rejects together.
type turn struct {
	Messages []messageRow `json:"messages"`
}

type messageRow struct {
	Index int       `json:"index"`
	Key   string    `json:"-"` // opens the message
	Type  text      `json:"type"`
	Role  text      `json:"role,omitempty"`
	Text  value     `json:"text"`
	Parts []text    `json:"parts,omitempty"` // what else there is in the content
	Calls []callRow `json:"calls,omitempty"`
	// MoreCalls is the number of calls that are not shown.
	MoreCalls int         `json:"more_calls,omitempty"`
	Error     bool        `json:"error,omitempty"` // of a result
	Call      text        `json:"call,omitempty"`  // that a result answers
	Stop      text        `json:"stop,omitempty"`  // why the model has stopped, if it is not the end of a turn
	Bytes     int         `json:"bytes"`
	Code      bool        `json:"-"` // the text is JSON
	Clipped   bool        `json:"-"` // there is more of its texts
	Opened    bool        `json:"-"`
	Whole     bool        `json:"-"`              // it is opened, and a download has the rest
	Beside    bool        `json:"-"`              // it is a result that stands beside its call
	JSON      *value      `json:"json,omitempty"` // if the request asks for it
	Findings  []objection `json:"findings,omitempty"`
	Withheld  bool        `json:"withheld,omitempty"` // a provider has refused some of it, and is not shown that
	Windows   []windowRow `json:"-"`                  // that begin here
}

type callRow struct {
	CallKey text  `json:"key,omitempty"`
	ID      text  `json:"id,omitempty"`
	Name    text  `json:"name"`
	Input   value `json:"input"`
	// State is answered, open or suspended.
	State  string      `json:"state"`
	Result *messageRow `json:"result,omitempty"`
}

// chatView makes the chat of a conversation.
type chatView struct {
	mask     *masker
	msgs     []state.Message
	pairs    pairing
	findings map[int][]objection // by message
	windows  []windowRow
	seen     []state.Message // by models, nil if that is all
	name     string          // of the chat
	open     string          // the parameter open
	limit    int             // of a preview, in bytes
	calls    int             // that can still be shown
	spent    int             // bytes of HTML that the page has beside the chat
}

func newChatView(mask *masker, msgs []state.Message, suspended []state.ToolCall, name, open string) *chatView {
	return &chatView{
		mask: mask, msgs: msgs, pairs: pairCalls(msgs, suspended), name: name, open: open, calls: maxChatCalls,
	}
}

// page returns the page of the chat that ends before a message. A turn is not
// divided unless it is longer than a page.
func (v *chatView) page(before int) chat {
	items := v.pairs.items
	end := slices.IndexFunc(items, func(it chatItem) bool { return it.message == before })
	if end < 0 {
		end = slices.IndexFunc(items, func(it chatItem) bool { return it.message > before })
	}
	if end < 0 {
		end = len(items)
	}
	start := v.back(end)
	c := chat{Name: v.name, Count: len(v.msgs), Older: -1, Newer: -1}
	if start > 0 {
		c.Older = items[start].message
	}
	if end < len(items) {
		next := end
		for next < len(items) && v.back(next+1) <= end {
			next++
		}
		c.Newer = len(v.msgs)
		if next < len(items) {
			c.Newer = items[next].message
		}
	}
	v.share(items[start:end])
	for i, it := range items[start:end] {
		if i == 0 || it.turn != items[start+i-1].turn {
			c.Turns = append(c.Turns, turn{})
		}
		last := &c.Turns[len(c.Turns)-1]
		last.Messages = append(last.Messages, v.row(it.message))
	}
	return c
}

// back returns the beginning of the page that ends before an item.
func (v *chatView) back(end int) int {
	items, start, n := v.pairs.items, end, 0
	for start > 0 && (n == 0 || n+v.weight(items[start-1].message) <= pageRows) {
		start--
		n += v.weight(items[start].message)
	}
	return start
}

// weight is the number of messages that are shown in the place of one: itself
// and the results of its calls.
func (v *chatView) weight(message int) int { return 1 + len(v.pairs.results[message]) }

// share divides the room of the page among what it shows.
func (v *chatView) share(items []chatItem) {
	texts := 0
	room := chatBytes - v.spent
	for _, it := range items {
		texts += v.weight(it.message)
		if m, ok := v.msgs[it.message].(state.ToolCallMessage); ok {
			texts += len(m.Calls())
		}
		for _, i := range append(v.results(it.message), it.message) {
			room -= objectionBytes * len(v.findings[i])
			if v.open == v.key(i) || v.open == v.key(i)+".json" {
				room -= openBytes
			}
		}
	}
	v.limit = min(max(max(room, 0)/max(texts, 1), minPreview), previewBytes)
}

// results returns the messages that are shown beside the calls of one.
func (v *chatView) results(message int) []int {
	var list []int
	for _, result := range v.pairs.results[message] {
		list = append(list, result)
	}
	return list
}

// key returns the parameter open for a message.
func (v *chatView) key(message int) string { return v.name + strconv.Itoa(message) }

// row returns a message. The results of its calls are in it.
func (v *chatView) row(i int) messageRow {
	m := v.msgs[i]
	row := messageRow{
		Index: i, Key: v.key(i), Type: v.label(m.Type()), Role: v.label(m.Role()), Bytes: len(m.Raw()),
		Findings: v.findings[i], Opened: v.open == v.key(i), Withheld: v.seen != nil && v.seen[i] != m,
	}
	for k := range row.Findings {
		row.Findings[k].Detail = v.mask.detail(v.msgs, i, row.Findings[k].detail)
	}
	for _, w := range v.windows {
		if w.Begin == i {
			row.Windows = append(row.Windows, w)
		}
	}
	limit := v.limit
	if row.Opened {
		limit = openBytes
	}
	switch m := m.(type) {
	case state.TextMessage:
		row.Text, row.Parts = v.content(m.Content(), m.Text(), limit)
		row.Stop = v.stop(m.StopReason())
	case state.ToolCallMessage:
		row.Stop = v.stop(m.StopReason())
		v.addCalls(&row, m.Calls(), limit)
	case state.ToolResultMessage:
		row.Text, row.Parts = v.content(m.Content(), m.Text(), limit)
		row.Code = !strings.HasPrefix(string(m.Content()), `"`) && row.Parts == nil
		row.Error, row.Call = m.IsError(), v.label(m.Call().Name)
		if row.Call == "" {
			row.Call = v.label(m.Call().ID)
		}
	default:
		row.Text = v.mask.fit(string(m.Raw()), limit, false)
	}
	row.Clipped = row.Clipped || row.Text.Clipped
	row.Whole = row.Opened && row.Clipped && v.name == "" && !v.mask.Blind
	if v.open == v.key(i)+".json" {
		raw := v.mask.open(m.Raw())
		row.JSON = &raw
	}
	return row
}

// label returns a name or an id of a message.
func (v *chatView) label(s string) text { return v.mask.fit(s, labelBytes, false).Text }

// stop returns why the model has stopped if it is not what is expected.
func (v *chatView) stop(reason string) text {
	if reason == "stop" || reason == "tool" {
		return ""
	}
	return v.label(reason)
}

// content returns the text of a content, and the types of its other parts. A
// content without text is shown as JSON.
func (v *chatView) content(content state.JSON, words string, limit int) (value, []text) {
	parts := v.parts(content)
	if words == "" && parts == nil && content != `""` && content != "null" {
		words = string(content)
	}
	return v.mask.fit(words, limit, true), parts
}

// parts returns the types of the parts of a content that are not texts.
func (v *chatView) parts(content state.JSON) []text {
	if !strings.HasPrefix(string(content), "[") {
		return nil
	}
	elements, err := jsontext.Elements([]byte(content))
	if err != nil {
		return nil
	}
	var kinds []string
	counts := map[string]int{}
	for _, e := range elements {
		kind := "value"
		if members, err := jsontext.Members(e); err == nil {
			if kind = members.String("type"); kind == "" && members.Get("text") != nil {
				kind = "text"
			}
		}
		if kind == "text" || kind == "input_text" || kind == "output_text" {
			continue
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	var shown []text
	for _, kind := range kinds[:min(len(kinds), 10)] {
		name := v.label(kind)
		if n := counts[kind]; n > 1 {
			name += text(fmt.Sprintf(" × %d", n))
		}
		shown = append(shown, name)
	}
	return shown
}

// addCalls adds the calls of a message with their results.
func (v *chatView) addCalls(row *messageRow, calls []state.ToolCall, limit int) {
	for k, call := range calls {
		if v.calls == 0 {
			row.MoreCalls = len(calls) - k
			return
		}
		v.calls--
		c := callRow{
			CallKey: v.label(call.Key), ID: v.label(call.ID), Name: v.label(call.Name),
			Input: v.mask.fit(string(call.Input), limit, false), State: "answered",
		}
		if result, ok := v.pairs.results[row.Index][k]; ok {
			answer := v.row(result)
			answer.Beside = true
			c.Result = &answer
		} else {
			c.State = v.pairs.waiting[callPlace{row.Index, k}]
		}
		row.Clipped = row.Clipped || c.Input.Clipped
		row.Calls = append(row.Calls, c)
	}
}

// fit returns the beginning of a string. Its HTML has about limit bytes, also if
// the string has many characters that HTML escapes.
func (m *masker) fit(s string, limit int, lines bool) value {
	if m.Blind && s != "" {
		return value{hiddenValue, len(s), false}
	}
	for n := limit; ; n /= 2 {
		v := m.show(s, n, lines)
		if escapedLen(string(v.Text)) <= limit+limit/2 || n <= minPreview/2 {
			return v
		}
	}
}

// escapedLen returns the length of a text as html/template writes it.
func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		switch s[i] {
		case '"', '\'', '+', '&':
			n += 4
		case '<', '>':
			n += 3
		}
	}
	return n
}

// pairing says which result answers which call, and in which order messages are
// shown.
type pairing struct {
	// results has the message that answers each call of a message.
	results map[int]map[int]int
	// waiting has the calls without a result: open or suspended.
	waiting map[callPlace]string
	items   []chatItem
}

// callPlace is a call of a message, by its number.
type callPlace struct{ message, call int }

// chatItem is a message that is not beside a call, and the turn to which it
// belongs.
type chatItem struct{ message, turn int }

// pairCalls finds the result of each call. Package transcript says which calls
// have none and which messages belong together.
func pairCalls(msgs []state.Message, suspended []state.ToolCall) pairing {
	p := pairing{results: map[int]map[int]int{}, waiting: map[callPlace]string{}}
	shapes := transcript.ShapesOf(msgs)
	pending, open := map[int][]state.ToolCall{}, map[int][]state.ToolCall{}
	for i, call := range shapes.Pending() {
		pending[i] = append(pending[i], call)
	}
	for i, call := range shapes.Pending(suspended...) {
		open[i] = append(open[i], call)
	}
	for number, group := range shapes.Groups() {
		beside := p.pairGroup(msgs, group, pending, open)
		for _, i := range group {
			if !beside[i] {
				p.items = append(p.items, chatItem{i, number})
			}
		}
	}
	return p
}

// pairGroup pairs the calls of a group, and returns the results that have one.
func (p *pairing) pairGroup(msgs []state.Message, group []int, pending, open map[int][]state.ToolCall) map[int]bool {
	type waitingCall struct {
		callPlace
		call state.ToolCall
	}
	var waiting []waitingCall
	beside := map[int]bool{}
	for _, i := range group {
		switch m := msgs[i].(type) {
		case state.ToolCallMessage:
			for k, call := range m.Calls() {
				if !takeFirst(pending, i, call) {
					waiting = append(waiting, waitingCall{callPlace{i, k}, call})
					continue
				}
				p.waiting[callPlace{i, k}] = "suspended"
				if takeFirst(open, i, call) {
					p.waiting[callPlace{i, k}] = "open"
				}
			}
		case state.ToolResultMessage:
			answered := m.Call()
			best := -1
			for at, w := range waiting {
				if answered.Key != "" && w.call.Key != "" {
					if answered.Key == w.call.Key {
						best = at
						break
					}
					continue
				}
				sameID, sameName := answered.ID == w.call.ID, answered.Name == w.call.Name
				if sameID && sameName || best < 0 && answered.ID != "" && sameID {
					best = at
					if sameName {
						break
					}
				}
			}
			if best < 0 {
				continue
			}
			w := waiting[best]
			waiting = slices.Delete(waiting, best, best+1)
			if p.results[w.message] == nil {
				p.results[w.message] = map[int]int{}
			}
			p.results[w.message][w.callPlace.call] = i
			beside[i] = true
		}
	}
	for _, w := range waiting { // whose results are not told apart
		p.waiting[w.callPlace] = "open"
	}
	return beside
}

// takeFirst removes a call from the front of those of a message, and reports
// whether it was there.
func takeFirst(calls map[int][]state.ToolCall, message int, call state.ToolCall) bool {
	list := calls[message]
	if len(list) == 0 || list[0] != call {
		return false
	}
	calls[message] = list[1:]
	return true
}

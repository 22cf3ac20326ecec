package view

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// formats are the formats of providers, as addresses name them.
var formats = []struct {
	name   string
	title  string
	format *provider.Format
}{
	{"openai", "OpenAI", provider.OpenAI},
	{"responses", "OpenAI Responses", provider.OpenAIResponses},
	{"anthropic", "Anthropic", provider.Anthropic},
	{"gemini", "Gemini", provider.Gemini},
}

const (
	// maxObjections is the number of findings of a provider, and of changes that
	// mend them, that a page shows.
	maxObjections = 25
	// maxMessageObjections is the number of findings that are shown at a message.
	maxMessageObjections = 3
	// maxWindows is the number of windows that a page shows.
	maxWindows = 20
	// detailBytes is the length of a detail of a objection.
	detailBytes = 120
	// clippedRunes is the length to which package transcript shortens names.
	clippedRunes = 60
)

// conversationData is the data of the page with the conversation.
type conversationData struct {
	As        string        `json:"as,omitempty"`
	Agents    []string      `json:"agents"`
	Chat      chat          `json:"chat"`
	Windows   []windowRow   `json:"windows,omitempty"`
	Providers []providerRow `json:"providers"`
	// Open and Suspended count the calls without a result.
	Open      int  `json:"open_calls"`
	Suspended int  `json:"suspended_calls"`
	Denied    bool `json:"denied,omitempty"` // the agent may not read the conversation
	Secret    bool `json:"secret,omitempty"` // the schema declares the conversation a secret
	Blind     bool `json:"blind,omitempty"`
	// Chosen is the provider that the request asks about.
	Chosen *providerRow `json:"provider,omitempty"`
}

// windowRow is where the window of an agent begins.
type windowRow struct {
	Agent   text   `json:"agent,omitempty"` // "" for the host
	Begin   int    `json:"begin"`           // the message from which all are shown
	Summary *value `json:"summary,omitempty"`
}

// Before is the parameter before of the page that ends with the message.
func (w windowRow) Before() int { return w.Begin + 1 }

// providerRow is what a provider objects to.
type providerRow struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Count int    `json:"count"` // of the findings
	// Findings and Repairs are set for the provider that the request asks about.
	Findings []objection `json:"findings,omitempty"`
	Repairs  []objection `json:"repairs,omitempty"`
}

// objection is something that providers reject, or what would be done about it.
type objection struct {
	Message   int      `json:"message"`
	Rule      string   `json:"rule"`
	Detail    text     `json:"detail,omitempty"`
	Providers []string `json:"providers,omitempty"`
	detail    string   // before it is masked
}

// Before is the parameter before of the page that ends with the message.
func (f objection) Before() int { return f.Message + 1 }

// Conversation shows the messages of a workspace, as the host or as an agent
// sees them.
func (src *Source) Conversation(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	before, ok, err := q.number("before")
	if err != nil {
		return nil, err
	}
	if !ok || before > math.MaxInt {
		before = math.MaxInt
	}
	msgs, data := s.talk(q)
	data.Blind = s.mask.Blind
	suspended := waitingCalls(s.view)
	v := newChatView(s.mask, msgs, suspended, "", q.Get("open"))
	v.seen = transcript.Withhold(ctx, s.view.State(), msgs)
	for _, state := range v.pairs.waiting {
		if state == "suspended" {
			data.Suspended++
		} else {
			data.Open++
		}
	}
	if len(msgs) > 0 {
		v.findings = data.check(s.mask, msgs, suspended, q.Get("provider"))
	}
	if p := data.Chosen; p != nil {
		v.spent = objectionBytes * (len(p.Findings) + len(p.Repairs))
	}
	if data.Windows = s.agentWindows(q); len(data.Windows) > 0 {
		v.spent += openBytes
		v.windows = data.Windows
	}
	data.Chat = v.page(int(before))
	return s.page("conversation", "Conversation", "conversation", data, !ok), nil
}

// talk returns the messages that the request may show.
func (s *shown) talk(q Query) ([]state.Message, conversationData) {
	host := s.view.State()
	data := conversationData{As: visible(q.Get("as"), false), Agents: inside.Members(host.Schema().Team())}
	handle := host
	if as := q.Get("as"); as != "" {
		handle = host.As(as)
	}
	fields := handle.Fields()
	i := slices.IndexFunc(fields, func(f state.FieldInfo) bool { return f.Name == state.Messages.Name })
	switch {
	case i < 0:
		data.Denied = true
	case fields[i].Secret:
		data.Secret = true
	default:
		msgs, err := state.Messages.Get(handle)
		if err == nil {
			return msgs, data
		}
	}
	return nil, data
}

// agentWindows returns the windows that have moved: that of the agent whose view the
// request asks for, or those of all. What they say has openBytes together.
func (s *shown) agentWindows(q Query) []windowRow {
	host := s.view.State()
	agents := slices.Sorted(maps.Keys(inside.Windows().GetOr(host, nil)))
	if as := q.Get("as"); as != "" {
		agents = slices.DeleteFunc(agents, func(agent string) bool { return agent != as })
	}
	var rows []windowRow
	agents = agents[:min(len(agents), maxWindows)]
	for _, agent := range agents {
		handle := host
		if agent != "" {
			handle = host.As(agent)
		}
		place, err := transcript.PlaceOf(handle)
		if err != nil || place.Begin == 0 && place.Summary == "" {
			continue // it may not read them any more, or is shown all
		}
		row := windowRow{Agent: s.mask.name(agent), Begin: place.Begin}
		if place.Summary != "" {
			summary := s.mask.fit(place.Summary, openBytes/len(agents), true)
			row.Summary = &summary
		}
		rows = append(rows, row)
	}
	return rows
}

// check adds what the providers object to, and returns it by message.
func (data *conversationData) check(
	mask *masker, msgs []state.Message, suspended []state.ToolCall, chosen string,
) map[int][]objection {
	byMessage := map[int][]objection{}
	waiting, places := answerSuspended(msgs, suspended)
	for _, f := range formats {
		found := transcript.Check(waiting, f.format.Profile())
		for i := range found {
			found[i].Message = places[found[i].Message]
		}
		row := providerRow{Name: f.name, Title: f.title, Count: len(found)}
		for _, x := range found {
			list := byMessage[x.Message]
			at := slices.IndexFunc(list, func(o objection) bool { return o.Rule == x.Rule && o.detail == x.Detail })
			if at >= 0 {
				if with := list[at].Providers; with[len(with)-1] != f.title {
					list[at].Providers = append(with, f.title)
				}
			} else if len(list) < maxMessageObjections {
				byMessage[x.Message] = append(list, objection{
					Message: x.Message, Rule: x.Rule, detail: x.Detail, Providers: []string{f.title},
				})
			}
		}
		data.Providers = append(data.Providers, row)
		if f.name != chosen {
			continue
		}
		for _, x := range found[:min(len(found), maxObjections)] {
			row.Findings = append(row.Findings, objection{
				Message: x.Message, Rule: x.Rule, Detail: mask.detail(msgs, x.Message, x.Detail),
			})
		}
		_, changes := transcript.Repair(msgs, f.format.Profile(), repairPolicy(suspended))
		for _, x := range changes[:min(len(changes), maxObjections)] {
			row.Repairs = append(row.Repairs, objection{
				Message: x.Message, Rule: x.Rule, Detail: mask.detail(msgs, x.Message, x.Detail),
			})
		}
		data.Chosen = &row
	}
	return byMessage
}

// answerSuspended returns a conversation in which suspended calls have a result,
// as a program sends it: that they have none is no fault. places has the place
// of each message in msgs. That of a result is the place of the message before.
func answerSuspended(msgs []state.Message, suspended []state.ToolCall) (answered []state.Message, places []int) {
	answered = msgs
	for i := range msgs {
		places = append(places, i)
	}
	for _, call := range suspended {
		next, err := transcript.Answer(answered, state.ToolResult(call, "Waiting."))
		if err != nil { // the call is not in what this agent sees
			continue
		}
		at := 0
		for at < len(answered) && answered[at] == next[at] {
			at++
		}
		answered, places = next, slices.Insert(places, at, places[max(0, at-1)])
	}
	return answered, places
}

// waitingCalls returns the suspended calls of a workspace.
func waitingCalls(v *workspace.View) (calls []state.ToolCall) {
	for _, s := range v.Suspended() {
		calls = append(calls, s.ToolCall)
	}
	return calls
}

// repairPolicy is the policy with which the pages repair a conversation.
func repairPolicy(suspended []state.ToolCall) transcript.Policy {
	return transcript.Policy{AnswerCalls: true, KeepResults: true, Suspended: suspended}
}

// detail returns a detail of package transcript about a message. It has ids and
// names that were shortened, or changed into ones that a provider accepts, so
// that half of a secret may be left, or one that nothing finds. The detail of a
// message with a secret is left out, and one with a shortened name as well.
func (m *masker) detail(msgs []state.Message, message int, detail string) text {
	if message >= 0 && message < len(msgs) {
		if raw := string(msgs[message].Raw()); m.whole(raw) != raw {
			return ""
		}
	}
	for rest := detail; ; {
		i := strings.IndexByte(rest, '"')
		if i < 0 {
			return m.fit(detail, detailBytes, false).Text
		}
		quoted, err := strconv.QuotedPrefix(rest[i:])
		if err != nil {
			return ""
		}
		if name, _ := strconv.Unquote(quoted); utf8.RuneCountInString(name) >= clippedRunes {
			return ""
		}
		rest = rest[i+len(quoted):]
	}
}

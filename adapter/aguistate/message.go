package aguistate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/page"
)

// message is a message as a client has it, or a call of the message in front of it,
// which clients have as a part of that.
type message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Name       string     `json:"name"` // of the agent that has said it, or of the tool
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"toolCalls"`  // that a client sends
	ToolCallID string     `json:"toolCallId"` // of a result: its call; of a call: its message
	Error      string     `json:"error"`      // of a tool of the client

	open   bool // more of its text will come, and the client waits for that
	isNew  bool // the client was not told of it yet
	silent bool // it has calls: without a text, it begins with them
}

// roleCall is the role of a call, whose content is the JSON of its arguments.
const roleCall = "call"

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// content is a text, or a list with other media.
type content struct {
	text  string
	parts []page.Part // nil for a text
}

// contentOf returns the content of what a person has said.
func contentOf(parts []page.Part) (c content) {
	for _, p := range parts {
		if p.Kind == page.MediaPart {
			return content{parts: parts}
		}
		c.text += p.Text
	}
	return c
}

// shown returns the content for JSON.
func (c content) shown() any {
	if c.parts == nil {
		return c.text
	}
	list := []part{}
	for _, p := range c.parts {
		list = append(list, partOf(p))
	}
	return list
}

func (c *content) UnmarshalJSON(data []byte) error {
	var list []part
	switch {
	case data[0] == '"':
		c.text = jsontext.Unquote(data)
		return nil
	case data[0] != '[' || json.Unmarshal(data, &list) != nil: // it is of no known form
		return nil
	}
	var parts []page.Part
	for _, p := range list {
		parts = append(parts, p.read())
	}
	*c = contentOf(parts)
	return nil
}

// said returns what a person says as a message of a State.
func (c content) said(pages *page.Source) (state.Message, error) {
	if c.parts == nil {
		return state.UserText(c.text), nil
	}
	return pages.Content(c.parts...)
}

// equal reports whether a client shows both alike.
func (c content) equal(o content) bool {
	return c.text == o.text && slices.EqualFunc(c.parts, o.parts, func(a, b page.Part) bool {
		return a.Text == b.Text && (a.Media == nil) == (b.Media == nil) && (a.Media == nil || a.Media.URL == b.Media.URL)
	})
}

// part is a part of a message of a user.
type part struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`

	// Of version 0.0: type "binary".
	MimeType string `json:"mimeType,omitempty"`
	URL      string `json:"url,omitempty"`
	Data     string `json:"data,omitempty"`
}

type source struct {
	Type     string `json:"type"` // data or url
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitempty"`
}

// read returns what a user has sent. A text stands for what cannot be sent: a client
// sends all messages each time, and an error would end the thread.
func (p part) read() page.Part {
	if p.Type == "text" {
		return page.Part{Kind: page.Text, Text: p.Text}
	}
	if p.Type == "binary" {
		p.Type = fileType(p.MimeType)
		p.Source = &source{"data", p.Data, p.MimeType}
		if p.URL != "" {
			p.Source = &source{"url", p.URL, p.MimeType}
		}
	}
	isFile := slices.Contains([]string{"image", "document", "audio", "video"}, p.Type)
	if !isFile {
		p.Type = "content"
	}
	if isFile && p.Source != nil && p.Source.Value != "" {
		media := &page.Media{Type: p.Source.MimeType, URL: p.Source.Value}
		switch {
		case p.Source.Type == "data":
			media.URL = "data:" + media.Type + ";base64," + media.URL
		case media.Type == "" && p.Type != "document":
			media.Type = p.Type + "/*"
		}
		made := page.Part{Kind: page.MediaPart, Media: media}
		if _, err := page.Content(made); err == nil && (p.Source.Type == "data" || p.Source.Type == "url") {
			return made
		}
	}
	return page.Part{Kind: page.Text, Text: "[" + p.Type + " left out]"}
}

// partOf is the part that read reads.
func partOf(p page.Part) part {
	if p.Kind != page.MediaPart {
		return part{Type: "text", Text: p.Text}
	}
	if typ, data, ok := strings.Cut(strings.TrimPrefix(p.Media.URL, "data:"), ";base64,"); ok {
		return part{Type: fileType(typ), Source: &source{"data", data, typ}}
	}
	mime := p.Media.Type
	if strings.HasSuffix(mime, "/*") {
		mime = ""
	}
	return part{Type: fileType(p.Media.Type), Source: &source{"url", p.Media.URL, mime}}
}

// fileType returns the type of a part with a file.
func fileType(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}

// messagesOf returns the messages of a page.
func messagesOf(p *page.Page) []*message {
	list := make([]*message, 0, len(p.Items)+len(p.Pending))
	for _, items := range [][]*page.Item{p.Items, p.Pending} {
		for _, item := range items {
			list = appendItem(list, item)
		}
	}
	return list
}

// appendItem appends what a client has in place of an item: what a person says, or the
// thoughts of a model, its text with its calls, and their results.
func appendItem(list []*message, item *page.Item) []*message {
	if item.Role != "assistant" {
		return append(list, &message{ID: item.ID, Role: item.Role, Content: contentOf(item.Parts)})
	}
	says := &message{ID: item.ID, Role: item.Role, Name: item.Agent}
	var calls, results []*message
	isSaid, thinks := false, false
	for i, p := range item.Parts {
		open := item.Open && i == len(item.Parts)-1
		switch p.Kind {
		case page.Thought:
			thinks = true
			list = append(list, &message{ID: item.ID + "-" + p.ID, Role: "reasoning", Content: content{text: p.Text}, open: open})
		case page.Text:
			says.Content.text, says.open, isSaid = p.Text, open, true
		case page.CallPart:
			says.silent = true
			c := &message{ID: callID(item, p), Role: roleCall, Name: p.Call.Name, ToolCallID: item.ID}
			c.open = open && p.Call.Input == ""
			c.Content.text = cmp.Or(string(p.Call.Input), p.Text)
			calls = append(calls, c)
			if result, ok := resultOf(p.Call); ok {
				results = append(results, &message{ID: c.ID + "-result", Role: "tool", ToolCallID: c.ID, Content: content{text: result}})
			}
		}
	}
	if isSaid || says.silent || !thinks && !item.Open {
		list = append(list, says)
	}
	return append(append(list, calls...), results...)
}

// callID returns the id of a call for a client, which is known before its key.
func callID(item *page.Item, p page.Part) string { return item.ID + "-" + p.ID }

// resultOf returns what a client is told as the result of a call.
func resultOf(c *page.Call) (text string, ok bool) {
	switch c.State {
	case page.CallDone:
		return c.Output.Text(), true
	case page.CallFailed:
		return cmp.Or(c.Output.Text(), "The call has failed."), true
	case page.CallRefused:
		if c.Reason == "" {
			return "The call was refused by a person.", true
		}
		return "The call was refused by a person: " + c.Reason, true
	case page.CallExpired:
		return "The call has expired: nobody has decided in time.", true
	}
	return "", false
}

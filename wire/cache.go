package wire

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
)

// maxBreakpoints is how many breakpoints of the prompt cache Anthropic accepts.
const maxBreakpoints = 4

// prepareCache returns the body of a request, so that the next request hits the
// provider's cache of what both say alike. behind is the context as it is sent.
func (t *Transport) prepareCache(ctx context.Context, format *provider.Format, body []byte, behind string) []byte {
	switch format {
	case provider.Anthropic:
		if t.Context != nil || behind != "" || t.Cache {
			body = withBlocks(body)
		}
		if t.Cache {
			body = withBreakpoints(body, behind)
		}
	case provider.OpenAI, provider.OpenAIResponses:
		run := runctx.RunOf(ctx)
		if !t.Cache || run == nil {
			break
		}
		if members, _ := jsontext.Members(body); members.Get(cacheKey) == nil {
			body = members.WithString(cacheKey, run.CacheKey()).JSON()
		}
	}
	return body
}

// cacheKey is the setting of OpenAI by which requests that begin alike reach one
// server.
const cacheKey = "prompt_cache_key"

// watchPrompt tells the Logger once if the prompt is another than in the latest
// request of the agent. msgs are the messages of the request.
func (t *Transport) watchPrompt(ctx context.Context, st *state.State, msgs []state.Message, prompt string) {
	if t.Logger == nil || atomic.LoadUint32(&t.told) != 0 {
		return
	}
	last := lastPrompt(st)
	n := systemLen(last)
	if n == 0 {
		return
	}
	before := systemText(last[:n])
	own := "" // of the program, which may send others in between
	if n := systemLen(msgs); n > 0 && systemText(msgs[:n]) != "" {
		own = systemText(msgs[:n]) + "\n\n"
	}
	if strings.HasPrefix(before, own) && !strings.HasSuffix(before, prompt) && atomic.CompareAndSwapUint32(&t.told, 0, 1) {
		t.Logger.WarnContext(ctx, "wire: Transport.Prompt differs from that of the last request of the State, "+
			"so that the provider's prompt cache misses: what changes belongs in Transport.Context")
	}
}

// lastPrompt returns the prompt of the latest result of the agent, if it is one of
// the latest results.
func lastPrompt(st *state.State) []state.Message {
	history := st.History()
	n := history.Len()
	for i := n - 1; i >= max(0, n-recentResults); i-- {
		if r, ok := history.At(i); ok && r.Agent == st.Agent() {
			return r.Prompt
		}
	}
	return nil
}

const recentResults = 8

// systemText returns the text at the end of a system prompt, "" if it has parts.
func systemText(system []state.Message) string {
	content := system[len(system)-1].(state.TextMessage).Content()
	if jsontext.Kind([]byte(content)) != "string" {
		return ""
	}
	return content.Text()
}

// withBlocks returns the body of a request to Anthropic in which users say blocks.
// A text that becomes blocks only when a breakpoint or the context is put there
// would have other bytes in the next request.
func withBlocks(body []byte) []byte {
	members, _ := jsontext.Members(body) // encoded by the format
	entries, _ := members.Elements("messages")
	changed := false
	for i, raw := range entries {
		entry, _ := jsontext.Members(raw)
		content := entry.Get("content")
		if entry.String("role") != "user" || jsontext.Kind(content) != "string" {
			continue
		}
		changed = true
		entries[i] = entry.With("content", textBlocks(content)).JSON()
	}
	if !changed {
		return body
	}
	return members.With("messages", jsontext.Array(entries)).JSON()
}

// textBlocks returns the blocks for a text that is a JSON string.
func textBlocks(text []byte) []byte {
	return jsontext.Array([][]byte{jsontext.Object{}.WithString("type", "text").With("text", text).JSON()})
}

// withBreakpoints returns the body of a request to Anthropic with breakpoints: at
// the newest message of the user in front of the context, at the end of the tools
// and of the system prompt, and at the message of the user before. Those of the
// program stay, and count. What it has put at a place for one of these is left.
func withBreakpoints(body []byte, context string) []byte {
	p := readPrompt(body)
	places := []*block{
		p.lastOf(p.messages, context, 1), p.lastTool(), p.lastOf([][]*block{p.system}, "", 1),
		p.lastOf(p.messages, context, 2),
	}
	n, changed := p.breakpoints(), false
	for _, b := range places {
		if b != nil && n < maxBreakpoints && b.control == nil && !b.nested {
			b.control, b.added = p.controlFor(b), true
			n, changed = n+1, true
		}
	}
	if !changed {
		return body
	}
	return p.json()
}

// prompt is what a request to Anthropic says to the model, in the order in which
// it is cached.
type prompt struct {
	members  jsontext.Object
	tools    []*block
	system   []*block
	messages [][]*block        // of each entry of a user, and nil for others
	entries  []jsontext.Object // nil if their content has no blocks
	all      []*block
	whole    []byte // the breakpoint of the request as a whole
}

// block is a tool, or a block of a message.
type block struct {
	members jsontext.Object
	control []byte // the breakpoint, nil if there is none
	nested  bool   // there is one within the block
	added   bool
}

func readPrompt(body []byte) *prompt {
	p := &prompt{}
	p.members, _ = jsontext.Members(body) // encoded by the format
	tools, _ := p.members.Elements("tools")
	p.tools = p.read(tools)
	system := p.members.Get("system")
	if jsontext.Kind(system) == "string" && string(system) != `""` {
		system = textBlocks(system)
	}
	blocks, _ := jsontext.Elements(system)
	p.system = p.read(blocks)
	entries, _ := p.members.Elements("messages")
	p.entries, p.messages = make([]jsontext.Object, len(entries)), make([][]*block, len(entries))
	for i, raw := range entries {
		entry, _ := jsontext.Members(raw)
		blocks, _ := entry.Elements("content")
		read := p.read(blocks)
		if p.entries[i] = entry; entry.String("role") == "user" {
			p.messages[i] = read
		}
	}
	p.whole = p.members.Get("cache_control")
	return p
}

func (p *prompt) read(raws [][]byte) []*block {
	blocks := make([]*block, 0, len(raws))
	for _, raw := range raws {
		b := &block{}
		b.members, _ = jsontext.Members(raw)
		if bytes.Contains(raw, []byte(`"cache_control"`)) { // in a text, the quotes are escaped
			b.control = b.members.Get("cache_control")
			b.nested = b.control == nil
		}
		blocks = append(blocks, b)
	}
	p.all = append(p.all, blocks...)
	return blocks
}

// breakpoints returns how many breakpoints the program has set.
func (p *prompt) breakpoints() int {
	n := 0
	for _, b := range p.all {
		if b.control != nil || b.nested {
			n++
		}
	}
	if p.whole != nil {
		n++
	}
	return n
}

// lastTool returns the last tool that the cache may end with.
func (p *prompt) lastTool() *block {
	for i := len(p.tools) - 1; i >= 0; i-- {
		if !p.tools[i].members.Bool("defer_loading") {
			return p.tools[i]
		}
	}
	return nil
}

// lastOf returns the last block of the n-th last list that has one, without the
// context. A list may have nothing else.
func (p *prompt) lastOf(lists [][]*block, context string, n int) *block {
	for i := len(lists) - 1; i >= 0; i-- {
		list := lists[i]
		if k := len(list); k > 0 && context != "" && list[k-1].members.String("text") == context {
			list = list[:k-1]
		}
		if len(list) == 0 {
			continue
		}
		if n--; n == 0 {
			return list[len(list)-1]
		}
	}
	return nil
}

// controlFor returns a breakpoint that lives as long as that of the program in
// front of it, or else behind it: those that live longer must come first.
func (p *prompt) controlFor(place *block) []byte {
	var control []byte
	passed := false
	for _, b := range p.all {
		passed = passed || b == place
		if passed && control != nil {
			return control
		}
		if b.control != nil && !b.added {
			control = b.control
		}
	}
	switch {
	case control != nil:
		return control
	case p.whole != nil:
		return p.whole
	}
	return []byte(`{"type":"ephemeral"}`)
}

// json returns the body of the request.
func (p *prompt) json() []byte {
	body := p.members
	if anyAdded(p.tools) {
		body = body.With("tools", encodeBlocks(p.tools))
	}
	if anyAdded(p.system) {
		body = body.With("system", encodeBlocks(p.system))
	}
	entries, _ := p.members.Elements("messages")
	for i, blocks := range p.messages {
		if anyAdded(blocks) {
			entries[i] = p.entries[i].With("content", encodeBlocks(blocks)).JSON()
		}
	}
	return body.With("messages", jsontext.Array(entries)).JSON()
}

func anyAdded(blocks []*block) bool {
	for _, b := range blocks {
		if b.added {
			return true
		}
	}
	return false
}

func encodeBlocks(blocks []*block) []byte {
	raws := make([][]byte, len(blocks))
	for i, b := range blocks {
		if b.added {
			b.members = b.members.With("cache_control", b.control)
		}
		raws[i] = b.members.JSON()
	}
	return jsontext.Array(raws)
}

package converse

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

func (codec) NewAssembler(emit func(provider.Delta)) provider.Assembler {
	return &assembler{emit: emit, byIndex: map[state.JSON]*block{}}
}

// assembler puts the events of ConverseStream together.
type assembler struct {
	emit     func(provider.Delta)
	role     state.JSON // empty before the message
	blocks   []*block
	byIndex  map[state.JSON]*block
	calls    int
	stop     state.JSON // empty before the end
	metadata object     // of the last event
}

// block is a block as far as it has come.
type block struct {
	use       object // of a call
	call      int
	isCall    bool
	text      strings.Builder // or the input of a call
	thinking  strings.Builder
	isThought bool
	signature strings.Builder
	redacted  state.JSON
}

func (a *assembler) Add(event state.JSON) error {
	members := objectOf(event)
	if err := failureOf(members); err != nil {
		return err
	}
	start, delta := objectOf(members["contentBlockStart"]), objectOf(members["contentBlockDelta"])
	switch {
	case objectOf(members["messageStart"]) != nil:
		a.role = state.JSONText(objectOf(members["messageStart"]).text("role"))
	case start != nil:
		b := a.block(start["contentBlockIndex"])
		if b.use = objectOf(objectOf(start["start"])["toolUse"]); b.use != nil && !b.isCall {
			b.isCall, b.call = true, a.calls
			a.calls++
			a.emit(b.delta(provider.DeltaInput, ""))
		}
	case delta != nil:
		a.add(a.block(delta["contentBlockIndex"]), objectOf(delta["delta"]))
	case objectOf(members["messageStop"]) != nil:
		a.stop = state.JSONText(objectOf(members["messageStop"]).text("stopReason"))
	case objectOf(members["metadata"]) != nil:
		a.metadata = objectOf(members["metadata"])
	}
	return nil
}

// block returns the block of an index, a new one if there is none: blocks of
// text have no start.
func (a *assembler) block(index state.JSON) *block {
	b := a.byIndex[index]
	if b == nil {
		b = &block{}
		a.byIndex[index], a.blocks = b, append(a.blocks, b)
	}
	return b
}

func (a *assembler) add(b *block, delta object) {
	if use := objectOf(delta["toolUse"]); use != nil {
		b.text.WriteString(use.text("input"))
		if b.isCall {
			a.emit(b.delta(provider.DeltaInput, use.text("input")))
		}
		return
	}
	if thought := objectOf(delta["reasoningContent"]); thought != nil {
		b.isThought = true
		b.thinking.WriteString(thought.text("text"))
		b.signature.WriteString(thought.text("signature"))
		if thought["redactedContent"] != "" {
			b.redacted = thought["redactedContent"]
		}
		a.emit(b.delta(provider.DeltaThinking, thought.text("text")))
		return
	}
	if delta.isText("text") {
		b.text.WriteString(delta.text("text"))
		a.emit(b.delta(provider.DeltaText, delta.text("text")))
	}
}

func (b *block) delta(kind provider.DeltaKind, text string) provider.Delta {
	d := provider.Delta{Kind: kind, Text: text}
	if kind == provider.DeltaInput {
		d.Call, d.CallID, d.Name = b.call, b.use.text("toolUseId"), b.use.text("name")
	}
	return d
}

// json returns the block as it would have come whole. An input that broke off is
// a text.
func (b *block) json() state.JSON {
	switch {
	case b.isCall:
		use := object{"input": "{}"}
		for name, value := range b.use {
			use[name] = value
		}
		if input := state.JSON(b.text.String()); input.Valid() {
			use["input"] = input
		} else if input != "" {
			use["input"] = state.JSONText(b.text.String())
		}
		return encode(object{"toolUse": encode(use)})
	case b.redacted != "":
		return encode(object{"reasoningContent": encode(object{"redactedContent": b.redacted})})
	case b.isThought:
		thought := object{"text": state.JSONText(b.thinking.String())}
		if b.signature.Len() > 0 {
			thought["signature"] = state.JSONText(b.signature.String())
		}
		return encode(object{"reasoningContent": encode(object{"reasoningText": encode(thought)})})
	}
	return encode(object{"text": state.JSONText(b.text.String())})
}

// Ended reports whether the metadata has come, which follows the message.
func (a *assembler) Ended() bool { return a.stop != "" && a.metadata != nil }

func (a *assembler) Result() (state.JSON, bool) {
	if a.role == "" {
		return "", false
	}
	content := make([]state.JSON, len(a.blocks))
	for i, b := range a.blocks {
		content[i] = b.json()
	}
	message := encode(object{"role": a.role, "content": encode(content)})
	body := object{"output": encode(object{"message": message})}
	if a.stop != "" {
		body["stopReason"] = a.stop
	}
	for name, value := range a.metadata {
		body[name] = value
	}
	return encode(body), a.stop != ""
}

package gemini

import (
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler(emit func(codec.Delta)) codec.Assembler { return &assembler{emit: emit} }

// assembler puts chunks together: each is a response with the parts that are
// new. Of several candidates it takes the one that a whole response has first.
type assembler struct {
	response, candidate, content codec.Growing // without the candidates, the content, the parts

	parts       []*streamedPart
	open        *streamedPart // a call whose arguments go on
	hasEmpty    bool          // there was an empty text
	begun       bool
	hasContents bool
	calls       int // that have ended
	emit        func(codec.Delta)
}

// streamedPart is a part as far as it has come: a text, a call whose arguments
// are streamed, or any other part.
type streamedPart struct {
	members codec.Growing
	text    []byte // of a run of texts
	thought bool   // the text is a thought
	as      string // the member with the call, if its arguments are streamed
	call    codec.Growing
	args    codec.Growing
}

// Add takes a chunk.
func (a *assembler) Add(chunk jsontext.Object) error {
	if err := chunk.Want("candidates", "array", "null", "nothing"); err != nil {
		return err
	}
	a.begun = true
	a.response.SetMembers(chunk, "candidates")
	return chunk.EachObject("candidates", a.addCandidate)
}

// addCandidate takes what is new of the first candidate.
func (a *assembler) addCandidate(_ []byte, candidate jsontext.Object) error {
	if index := candidate.Get("index"); !jsontext.IsNull(index) && string(index) != "0" {
		return nil
	}
	if err := candidate.Want("content", "object", "null", "nothing"); err != nil {
		return err
	}
	a.candidate.SetMembers(candidate, "content")
	if jsontext.IsNull(candidate.Get("content")) {
		return nil
	}
	content := candidate.Object("content")
	a.hasContents = true
	a.content.SetMembers(content, "parts")
	if err := content.Want("parts", "array", "null", "nothing"); err != nil {
		return fault.Under("$.content", err)
	}
	if jsontext.IsNull(content.Get("parts")) {
		return nil
	}
	a.content.Member("parts").Set([]byte("[]")) // Result sets those that have come
	elements, _ := content.Elements("parts")
	return fault.Under("$.content.parts", eachPiece(elements, a.addPart))
}

// eachPiece calls add with the members of each element. It returns the first
// problem: the other elements count.
func eachPiece(elements [][]byte, add func(raw []byte, piece jsontext.Object) error) (first error) {
	for i, raw := range elements {
		piece, err := jsontext.Members(raw)
		if err == nil {
			err = add(raw, piece)
		}
		if first == nil && err != nil {
			first = fault.Under(jsontext.Index("$", i), err)
		}
	}
	return first
}

func (a *assembler) addPart(raw []byte, members jsontext.Object) error {
	p := &codec.TablePart{Raw: raw, Members: members}
	err := table.ReadPart(p, "")
	switch {
	case err != nil:
		return err
	case p.Typ == codec.TypeCall:
		return a.addCall(p)
	}
	a.addText(p)
	return nil
}

// addText takes a part that is not a call. Texts that follow each other are
// one, as in a whole response, unless they say something else. Google warns
// against joining parts that have a signature with others.
func (a *assembler) addText(p *codec.TablePart) {
	text, thought := p.Members.Get("text"), p.Members.Bool("thought")
	a.emitText(p.Members.String("text"), thought)
	says := func(m jsontext.Member) bool {
		return m.Name != "text" && m.Name != "thought" && !jsontext.IsNull(m.Value)
	}
	if jsontext.Kind(text) != "string" || slices.ContainsFunc(p.Members, says) {
		a.addWhole(p)
		return
	}
	said := jsontext.Unquote(text)
	if said == "" {
		a.hasEmpty = true
		return
	}
	if n := len(a.parts); n > 0 {
		if last := a.parts[n-1]; len(last.text) > 0 && last.thought == thought {
			last.text = append(last.text, said...)
			return
		}
	}
	a.parts = append(a.parts, &streamedPart{text: []byte(said), thought: thought})
}

// addCall takes a part of a call. A call whose arguments are streamed begins
// with its name. The parts that follow have none, up to the one that does not
// say that the call will continue.
func (a *assembler) addCall(p *codec.TablePart) error {
	if err := p.Inner.Want("partialArgs", "array", "null", "nothing"); err != nil {
		return fault.Under(jsontext.Path("$", p.As), err)
	}
	goesOn := p.Inner.Bool("willContinue")
	pieces, _ := p.Inner.Elements("partialArgs") // none if it is null or missing
	call := a.open
	if call == nil && len(p.Inner) == 0 && len(p.Members) == 1 {
		return nil // the end of a call that has ended
	}
	if call == nil || p.Inner.String("name") != "" {
		if !goesOn && jsontext.IsNull(p.Inner.Get("partialArgs")) {
			a.open = nil
			a.addWhole(p)
			a.emitInput(p.Inner)
			return nil
		}
		call = &streamedPart{as: p.As}
		a.parts = append(a.parts, call)
	}
	a.open = nil
	if goesOn {
		a.open = call
	}
	call.members.SetMembers(p.Members, p.As)
	call.call.SetMembers(p.Inner, "willContinue", "partialArgs")
	err := eachPiece(pieces, func(_ []byte, piece jsontext.Object) error {
		return addArgument(&call.args, piece)
	})
	if !goesOn {
		a.emitInput(call.whole())
	}
	return fault.Under(jsontext.Path("$", p.As)+".partialArgs", err)
}

func (a *assembler) emitText(text string, thought bool) {
	kind := codec.DeltaText
	if thought {
		kind = codec.DeltaThinking
	}
	if text != "" {
		a.emit(codec.Delta{Kind: kind, Text: text})
	}
}

// emitInput emits the input of a call that has come whole.
func (a *assembler) emitInput(call jsontext.Object) {
	a.emit(codec.Delta{
		Kind: codec.DeltaInput, Text: string(call.Get("args")), Call: a.calls, ID: call.String("id"),
		Name: call.String("name"),
	})
	a.calls++
}

func (a *assembler) addWhole(p *codec.TablePart) {
	whole := &streamedPart{}
	whole.members.Set(p.Raw)
	a.parts = append(a.parts, whole)
}

// whole returns a call whose arguments are streamed.
func (p *streamedPart) whole() jsontext.Object {
	call := p.call.Object()
	if !p.args.IsEmpty() {
		call = call.With("args", p.args.JSON())
	}
	return call
}

func (p *streamedPart) json() []byte {
	switch {
	case p.as != "":
		whole := jsontext.Object{}.With(p.as, p.whole().JSON())
		return append(whole, p.members.Object()...).JSON()
	case len(p.text) > 0:
		whole := jsontext.Object{}.WithString("text", jsontext.Whole(string(p.text)))
		if p.thought {
			whole = whole.With("thought", []byte("true"))
		}
		return whole.JSON()
	}
	return p.members.JSON()
}

// Result returns the response, which is complete if the model said why it
// stopped, or the prompt was blocked.
func (a *assembler) Result() (jsontext.Object, bool) {
	if !a.begun {
		return nil, false
	}
	candidate := a.candidate.Object()
	if a.hasContents {
		candidate = candidate.With("content", a.contentJSON())
	}
	body := a.response.Object()
	if len(candidate) > 0 {
		body = body.With("candidates", jsontext.Array([][]byte{candidate.JSON()}))
	}
	blocked := enumName(body.Object("promptFeedback").Get("blockReason"), blockReasons)
	return body, enumName(candidate.Get("finishReason"), finishReasons) != nil || blocked != nil
}

// Ended returns false: chunks may follow the one that says why the model
// stopped.
func (a *assembler) Ended() bool { return false }

// blockReasons has the name for a prompt that is not blocked.
var blockReasons = []string{"BLOCK_REASON_UNSPECIFIED"}

func (a *assembler) contentJSON() []byte {
	parts := make([][]byte, len(a.parts), len(a.parts)+1)
	for i, p := range a.parts {
		parts[i] = p.json()
	}
	if len(parts) == 0 && a.hasEmpty {
		parts = append(parts, []byte(`{"text":""}`))
	}
	content := a.content.Object()
	if len(parts) > 0 {
		content = content.With("parts", jsontext.Array(parts))
	}
	return content.JSON()
}

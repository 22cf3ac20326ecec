package provider

import (
	"github.com/agentstate/state/internal/jsontext"
)

func (gemini) assemble() assembler { return &geminiStream{} }

// geminiStream puts chunks together: each is a response with the parts that are
// new. Of several candidates it takes the one that a whole response has first.
type geminiStream struct {
	response, candidate, content latest
	parts                        []*geminiPiece
	open                         *geminiPiece // a call whose arguments go on
	said                         bool         // there was an empty text
	began, inContent             bool
}

// geminiPiece is a part that may grow.
type geminiPiece struct {
	members latest
	text    []byte // of a run of texts, if members is empty
	thought bool   // of that text
	as      string // the member with the call, if its arguments are streamed
	call    latest
	args    geminiArgs
}

// latest is an object whose members are replaced by later ones.
type latest struct {
	names  []string
	values map[string][]byte
}

// set sets a member, unless it says nothing.
func (l *latest) set(name string, value []byte) {
	if l.values == nil {
		l.values = map[string][]byte{}
	}
	if _, ok := l.values[name]; !ok {
		l.names = append(l.names, name)
	} else if string(value) == "null" {
		return
	}
	l.values[name] = value
}

func (l *latest) object() jsontext.Object {
	o := make(jsontext.Object, len(l.names), len(l.names)+1)
	for i, name := range l.names {
		o[i] = jsontext.Member{Name: name, Value: l.values[name]}
	}
	return o
}

func (s *geminiStream) event(data []byte) error {
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	candidates := jsontext.Object(members).Get("candidates")
	if err := want("$.candidates", candidates, "array", "null", "nothing"); err != nil {
		return err
	}
	s.began = true
	for _, m := range members {
		if m.Name != "candidates" {
			s.response.set(m.Name, m.Value)
		}
	}
	if jsontext.Kind(candidates) != "array" {
		return nil
	}
	elements, err := jsontext.Elements(candidates)
	if err != nil {
		return err
	}
	for i, element := range elements {
		path := jsontext.Index("$.candidates", i)
		if err := want(path, element, "object"); err != nil {
			return err
		}
		members, err := jsontext.Members(element)
		if err != nil {
			return err
		}
		if index := jsontext.Object(members).Get("index"); index != nil && string(index) != "0" && string(index) != "null" {
			continue
		}
		if err := s.first(path, members); err != nil {
			return err
		}
	}
	return nil
}

// first takes what is new of the first candidate.
func (s *geminiStream) first(path string, members jsontext.Object) error {
	path = jsontext.Path(path, "content")
	content := members.Get("content")
	if err := want(path, content, "object", "null", "nothing"); err != nil {
		return err
	}
	for _, m := range members {
		if m.Name != "content" {
			s.candidate.set(m.Name, m.Value)
		}
	}
	if jsontext.Kind(content) != "object" {
		return nil
	}
	held, err := jsontext.Members(content)
	if err != nil {
		return err
	}
	s.inContent = true
	for _, m := range held {
		if m.Name != "parts" {
			s.content.set(m.Name, m.Value)
		}
	}
	path = jsontext.Path(path, "parts")
	value := jsontext.Object(held).Get("parts")
	if err := want(path, value, "array", "null", "nothing"); err != nil || jsontext.Kind(value) != "array" {
		return err
	}
	parts, err := jsontext.Elements(value)
	if err != nil {
		return err
	}
	s.content.set("parts", []byte("[]")) // there will be some in the end
	var bad error                        // the first problem; the other parts count
	for i, part := range parts {
		p, err := geminiPartOf(jsontext.Index(path, i), part)
		if err == nil {
			err = s.part(p)
		}
		if bad == nil {
			bad = err
		}
	}
	return bad
}

// part takes a part. Texts that follow each other are one, as in a whole
// response, unless they have a signature: Google warns against joining parts
// that have one with others.
func (s *geminiStream) part(p geminiPart) error {
	if p.typ == "tool_call" {
		return s.call(p)
	}
	text, thought := p.members.Get("text"), string(p.members.Get("thought")) == "true"
	plain := jsontext.Kind(text) == "string" && (len(p.members) == 1 || len(p.members) == 2 && thought)
	if !plain {
		s.add(p)
		return nil
	}
	said := jsontext.Unquote(text)
	if said == "" {
		s.said = true
		return nil
	}
	if n := len(s.parts); n > 0 {
		if last := s.parts[n-1]; len(last.text) > 0 && last.thought == thought {
			last.text = append(last.text, said...)
			return nil
		}
	}
	s.parts = append(s.parts, &geminiPiece{text: []byte(said), thought: thought})
	return nil
}

// call takes a call. One whose arguments are streamed begins with its name; what
// follows has none, up to the one that does not say that it will continue.
func (s *geminiStream) call(p geminiPart) error {
	goesOn := string(p.inner.Get("willContinue")) == "true"
	partial := p.inner.Get("partialArgs")
	at := jsontext.Path(jsontext.Path(p.path, p.as), "partialArgs")
	if err := want(at, partial, "array", "null", "nothing"); err != nil {
		return err
	}
	piece := s.open
	if piece == nil && len(p.inner) == 0 && len(p.members) == 1 {
		return nil // the end of a call that has ended
	}
	if piece == nil || stringOf(p.inner.Get("name")) != "" {
		if !goesOn && jsontext.Kind(partial) != "array" {
			s.open = nil
			s.add(p)
			return nil
		}
		piece = &geminiPiece{as: p.as}
		s.parts = append(s.parts, piece)
	}
	s.open = piece
	if !goesOn {
		s.open = nil
	}
	for _, m := range p.members {
		if m.Name != p.as {
			piece.members.set(m.Name, m.Value)
		}
	}
	for _, m := range p.inner {
		if m.Name != "willContinue" && m.Name != "partialArgs" {
			piece.call.set(m.Name, m.Value)
		}
	}
	if jsontext.Kind(partial) != "array" {
		return nil
	}
	return piece.args.add(at, partial)
}

// add adds a part that is whole.
func (s *geminiStream) add(p geminiPart) {
	piece := &geminiPiece{}
	for _, m := range p.members {
		piece.members.set(m.Name, m.Value)
	}
	s.parts = append(s.parts, piece)
}

func (p *geminiPiece) json() []byte {
	switch {
	case p.as != "":
		call := p.call.object()
		if !p.args.empty() {
			call = call.With("args", p.args.append(nil))
		}
		whole := jsontext.Object{}.With(p.as, call.JSON())
		return append(whole, p.members.object()...).JSON()
	case len(p.text) > 0:
		whole := jsontext.Object{}.WithString("text", string(p.text))
		if p.thought {
			whole = whole.With("thought", []byte("true"))
		}
		return whole.JSON()
	}
	return p.members.object().JSON()
}

// result returns the response, which is complete if the model said why it
// stopped, or the prompt was blocked.
func (s *geminiStream) result() (jsontext.Object, bool) {
	if !s.began {
		return nil, false
	}
	candidate := s.candidate.object()
	if s.inContent {
		parts := make([][]byte, len(s.parts), len(s.parts)+1)
		for i, p := range s.parts {
			parts[i] = p.json()
		}
		if len(parts) == 0 && s.said {
			parts = append(parts, []byte(`{"text":""}`))
		}
		content := s.content.object()
		if len(parts) > 0 {
			content = content.With("parts", jsontext.Array(parts))
		}
		candidate = candidate.With("content", content.JSON())
	}
	body := s.response.object()
	if len(candidate) > 0 {
		body = body.With("candidates", jsontext.Array([][]byte{candidate.JSON()}))
	}
	finish := candidate.Get("finishReason")
	blocked := inside(body, "promptFeedback").Get("blockReason")
	return body, stringOf(finish) != "" || stringOf(blocked) != ""
}

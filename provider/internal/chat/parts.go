package chat

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// appendParts appends the parts of a delta. A text before them becomes a part.
func appendParts(member *codec.Growing, parts [][]byte) {
	if member.IsText() {
		text := member.JSON()
		member.Set([]byte("[]"))
		if !codec.IsEmpty(text) {
			member.Append(textPart(text).JSON())
		}
	}
	member.AsList()
	for i, raw := range parts {
		part, _ := jsontext.Members(raw) // none if it is not an object
		if before := partBefore(member, part, i == 0); before != nil {
			growPart(before, part)
		} else {
			member.Append(raw)
		}
	}
}

// partBefore returns the part of which another one is a piece, nil if it is a part
// of its own. OpenRouter's pieces of reasoning have the index of their part. Those
// of Mistral are of the type of the part before them, with which the first of a
// delta goes on.
func partBefore(parts *codec.Growing, piece jsontext.Object, first bool) *codec.Growing {
	switch piece.String("type") {
	case "text", "thinking", "reference", "reasoning.text", "reasoning.summary":
	default:
		return nil
	}
	hasIndex := !jsontext.IsNull(piece.Get("index"))
	for i := parts.Len() - 1; i >= 0; i-- {
		part := parts.Element(i).AsObject()
		if isPiece(part.Object(), piece) && (hasIndex || first && codec.IsEmpty(part.Object().Get("signature"))) {
			return part
		}
		if !hasIndex {
			return nil
		}
	}
	return nil
}

// isPiece reports whether a part has the type, the index and the id of a piece.
func isPiece(part, piece jsontext.Object) bool {
	id := part.String("id")
	return codec.EqualJSON(part.Get("type"), piece.Get("type")) &&
		codec.EqualJSON(part.Get("index"), piece.Get("index")) &&
		(id == "" || piece.String("id") == "" || id == piece.String("id"))
}

// growPart adds a piece of a part to it.
func growPart(part *codec.Growing, piece jsontext.Object) {
	for _, m := range piece {
		member := part.Member(m.Name)
		switch kind := jsontext.Kind(m.Value); {
		case kind == "string" && (m.Name == "text" || m.Name == "summary"):
			member.AppendText(jsontext.Unquote(m.Value))
		case kind == "array" && m.Name == "thinking":
			texts, _ := jsontext.Elements(m.Value)
			appendParts(member, texts)
		case kind == "array":
			elements, _ := jsontext.Elements(m.Value)
			member.Append(elements...)
		case member.IsEmpty() || !codec.IsEmpty(m.Value):
			member.Set(m.Value)
		}
	}
}

// appendText appends to a text. After parts, the text is one of them.
func appendText(member *codec.Growing, text string) {
	switch {
	case !member.IsList():
		member.AppendText(text)
	case text != "":
		appendParts(member, [][]byte{textPart(jsontext.AppendQuote(nil, text)).JSON()})
	}
}

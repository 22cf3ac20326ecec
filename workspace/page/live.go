package page

import (
	"slices"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace"
)

// answer is an answer that a model is making, as far as a page was told of it.
type answer struct {
	item    Item // without parts
	message string
	number  int
	attempt int
	begun   int
	parts   []*growing
}

// growing is a part of an answer.
type growing struct {
	kind Kind
	call int
	part Part // without its text
	text strings.Builder
	rest string // the beginning of a character that is not whole yet
	at   int    // how many bytes of it have come or are missing
	lost bool   // a piece is missing: the rest comes when it is stored
}

var kinds = map[workspace.EventKind]Kind{
	workspace.EventDelta: Text, workspace.EventThought: Thought, workspace.EventInput: CallPart,
}

// isOf reports whether a piece is one of the answer, and not of one that begins
// anew.
func (a *answer) isOf(e *workspace.Event) bool {
	return a.message == e.MessageID && a.number == e.Message && a.attempt == e.Attempt && a.begun == e.Begun
}

// add adds a piece. It returns false if there is nothing to tell.
func (a *answer) add(e *workspace.Event) (d Delta, ok bool) {
	kind := kinds[e.Kind]
	n := slices.IndexFunc(a.parts, func(g *growing) bool { return g.kind == kind && g.call == e.Call })
	begins := n < 0
	if begins {
		of := Delta{Part: partID(kind, e.Call), Kind: kind, Name: e.Name, Cut: e.Offset > 0}
		n, a.parts = len(a.parts), append(a.parts, &growing{kind: kind, call: e.Call, at: e.Offset, part: of.begun()})
	}
	g := a.parts[n]
	if g.lost = g.lost || e.Offset > g.at; g.lost || !begins && e.Offset+len(e.Delta) <= g.at {
		return Delta{}, false
	}
	text := g.rest + e.Delta[g.at-e.Offset:]
	g.at = e.Offset + len(e.Delta)
	text, g.rest = jsontext.CutHalf(text)
	g.text.WriteString(text)
	return Delta{Item: a.item.ID, Part: g.part.ID, Kind: kind, Name: e.Name, Text: text, Cut: begins && g.part.Cut}, begins || text != ""
}

// shown returns the answer as an item.
func (a *answer) shown() *Item {
	item := a.item
	item.Parts = []Part{}
	for _, g := range a.parts {
		p := g.part
		p.Text = g.text.String()
		item.Parts = append(item.Parts, p)
	}
	return &item
}

package origin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/jsontext"
)

// What a model reads in the place of what its provider has refused: as a part, and as
// texts. Others would change the bytes of requests that are cached.
const (
	noMedium = `{"type":"text","text":"[A picture or file stood here. It was withheld, because it was refused.]"}`
	noResult = "[The call was made. Its result was withheld, because it was refused.]"
	noWords  = "[What was said here was withheld, because it was refused.]"
)

// A Piece is what can be withheld of a conversation: a picture or another file, the
// result of a call, or what was said before the user spoke last, with its calls.
type Piece struct {
	Message           int // the index of its message
	IsMedium, IsWords bool
	// ID is made of what a picture or file holds, wherever it stands, is the key of
	// the call, or is made of what was said, and what the user says next: that tells
	// it from the same words at another place.
	ID   string
	Says string // what a picture or file holds, or its address; otherwise the text
	raw  string // the part that is a picture or file
}

// Words begins the ids of what was said.
const Words = "words-"

// The types of parts that are pictures or files, of any format and of the Model
// Context Protocol, the members that make a part one in Gemini, and those in which
// parts say what they say.
var (
	media = strings.Fields("image image_url input_image audio input_audio file input_file document video_url document_url resource " +
		"inlineData inline_data fileData file_data")
	says = strings.Fields("data blob file_data url image_url document_url video_url file_url fileUri file_uri file_id text content output")
)

// Pieces returns what can be withheld of a conversation, the last message first. It
// is not what the user says last, and no instructions.
func Pieces(msgs []state.Message) (pieces []Piece) {
	next := "" // the next message of the user
	for i, m := range slices.Backward(msgs) {
		if IsSystem(m) {
			continue
		}
		content, _ := jsontext.Members([]byte(m.Raw()))
		parts, _ := jsontext.Elements(content.Get("content")) // none if it is a text
		for _, raw := range parts {
			part, _ := jsontext.Members(raw) // none if it is not an object
			if data := Said(raw); len(data) > 0 && isMedium(part) {
				pieces = append(pieces, Piece{i, true, false, callkey.Derive(data[0]), data[0], string(raw)})
			}
		}
		if r, ok := m.(state.ToolResultMessage); ok {
			pieces = append(pieces, Piece{i, false, false, cmp.Or(r.Call().Key, callkey.Derive(string(m.Raw()))), m.Text(), ""})
		} else if next != "" && (m.Type() == "text" || m.Type() == "tool_call") {
			pieces = append(pieces, Piece{i, false, true, Words + callkey.Derive(string(m.Raw()), next), m.Text(), ""})
		}
		if m.Role() == "user" {
			next = string(m.Raw())
		}
	}
	return pieces
}

// isMedium reports whether a part is a picture or another file.
func isMedium(part jsontext.Object) bool {
	isMember := func(m jsontext.Member) bool { return slices.Contains(media, m.Name) }
	return slices.Contains(media, part.String("type")) || slices.ContainsFunc(part, isMember)
}

// Withhold returns a conversation without the pieces that have one of the ids. A text
// stands in their place.
func Withhold(msgs []state.Message, ids map[string]bool) []state.Message {
	shown := slices.Clone(msgs)
	for _, p := range Pieces(msgs) {
		switch m := shown[p.Message]; {
		case !ids[p.ID]:
		case p.IsWords && m.Type() == "text":
			shown[p.Message] = state.Text(m.Role(), noWords)
		case p.IsWords:
			calls := m.(state.ToolCallMessage).Calls()
			for i := range calls {
				calls[i].Input, calls[i].Extra = "{}", ""
			}
			shown[p.Message] = state.ToolCalls(calls...)
		case p.IsMedium:
			if without, err := state.DecodeMessage([]byte(strings.ReplaceAll(string(m.Raw()), p.raw, noMedium))); err == nil {
				shown[p.Message] = without
			}
		default:
			shown[p.Message] = state.ToolResult(m.(state.ToolResultMessage).Call(), state.JSONText(noResult))
		}
	}
	return shown
}

// Said returns what the parts in JSON say, and what pictures and files hold, without
// the beginning of a data URL. A path leads to the parts by names and indexes. Names
// that are no objects or lists, such as those of types, do not count.
func Said(value []byte, path ...string) (said []string) {
	parts, _ := jsontext.Elements(value) // none if it is not an array
	members, _ := jsontext.Members(value)
	if len(path) > 0 {
		member := members.Get(path[0])
		i, err := strconv.Atoi(path[0])
		switch kind := jsontext.Kind(member); {
		case err == nil:
			value = append(parts[min(i, len(parts)):], nil)[0]
		case kind == "object" || kind == "array":
			value = member
		}
		return Said(value, path[1:]...)
	}
	for _, m := range members {
		if jsontext.Kind(m.Value) != "string" {
			parts = append(parts, m.Value)
		} else if slices.Contains(says, m.Name) {
			text := strings.Split(jsontext.Unquote(m.Value), ";base64,")
			said = append(said, text[len(text)-1])
		}
	}
	for _, part := range parts {
		said = append(said, Said(part)...)
	}
	return said
}

// Package gemini is the format of generateContent and streamGenerateContent, of
// the Gemini API and of Vertex AI. Both take the names of members in camel case
// and in snake case, so the spelling is kept.
//
// Each run of parts of a content that are neither calls nor results becomes a
// text message, each run of calls a message with calls, and each result a
// message. A message keeps the difference of the content, and
//
//	in      the place of a content that is not an element of contents
//	bare    true for a system instruction that is its text
//	lone    true for a part that is not in an array
//	joined  as in package origin
//	role    of the content, unless it is what such a message has
//	as      the member that holds a call or a result, in snake case
//	block   the difference of what is in that member
//	part    the difference of the part with that member
package gemini

import (
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of generateContent.
type Format struct{ codec.Reporting }

// DecodeRequest adds the messages of a request.
func (f Format) DecodeRequest(d *codec.Decoder, body jsontext.Object) (codec.Request, error) {
	settings := body.Without("contents")
	for _, name := range []string{inInstruction, inSnakeInstruction} {
		if jsontext.IsNull(body.Get(name)) { // some SDKs send null for what is not set
			continue
		}
		settings = settings.Without(name)
		if err := body.Want(name, "object", "string"); err != nil {
			return codec.Request{}, err
		}
		if err := decodeInstruction(d, name, body); err != nil {
			return codec.Request{}, fault.Under(jsontext.Path("$", name), err)
		}
	}
	if err := body.Want("contents", "array", "object"); err != nil {
		return codec.Request{}, err
	}
	if only := body.Object("contents"); only != nil {
		err := decodeContent(d, place{inContents, "user"}, body.Get("contents"), only)
		return codec.SplitTools(settings, f.DecodeTool), fault.Under("$.contents", err)
	}
	err := body.EachObject("contents", func(raw []byte, content jsontext.Object) error {
		return decodeContent(d, place{inElement, "user"}, raw, content)
	})
	return codec.SplitTools(settings, f.DecodeTool), err
}

// decodeInstruction adds a system instruction: a content, or just a text.
func decodeInstruction(d *codec.Decoder, name string, body jsontext.Object) error {
	if content := body.Object(name); content != nil {
		return decodeContent(d, place{name, "system"}, body.Get(name), content)
	}
	kept := jsontext.Object{}.WithString(keptIn, name).With(keptBare, []byte("true"))
	return d.AddText("system", body.Get(name), kept)
}

// DecodeResponse adds the messages of the first candidate. There is none if the
// prompt was blocked.
func (Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("responseId")}
	if at, err := time.Parse(time.RFC3339, body.String("createTime")); err == nil {
		r.Created = codec.UnixSeconds(float64(at.Unix()))
	}
	if err := body.Want("candidates", "array", "null", "nothing"); err != nil {
		return r, err
	}
	candidates, _ := body.Elements("candidates") // none if it is null or missing
	if len(candidates) == 0 {
		if jsontext.IsNull(body.Get("candidates")) && jsontext.IsNull(body.Get("promptFeedback")) {
			return r, &fault.Error{Path: "$", Want: "candidates or promptFeedback", Got: "neither"}
		}
		return r, nil
	}
	candidate, err := jsontext.Members(candidates[0])
	if err == nil {
		r.Stop = enumName(candidate.Get("finishReason"), finishReasons)
		err = decodeCandidate(d, candidate)
	}
	return r, fault.Under("$.candidates[0]", err)
}

// finishReasons are the names of the numbers that Google's REST clients get for
// finishReason if they ask for enums as numbers. Those after 5 differ between
// the Gemini API and Vertex AI.
var finishReasons = []string{"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"}

// enumName returns the name of an enum as a JSON string, or the value if it is a
// number without one. It returns nil for a value that says nothing: null, or the
// first one.
func enumName(value []byte, names []string) []byte {
	if number, err := strconv.Atoi(string(value)); err == nil && number >= 0 && number < len(names) {
		value = jsontext.AppendQuote(nil, names[number])
	}
	if name := state.JSON(value).Text(); jsontext.IsNull(value) || name == "" || name == names[0] {
		return nil
	}
	return value
}

// decodeCandidate adds the content of a candidate. In a response, a content
// without a role is the model's. In a request it would be the user's.
func decodeCandidate(d *codec.Decoder, candidate jsontext.Object) error {
	if err := candidate.Want("content", "object", "null", "nothing"); err != nil {
		return err
	}
	raw, content := candidate.Get("content"), candidate.Object("content")
	if content == nil {
		return nil
	}
	if jsontext.Kind(content.Get("role")) != "string" {
		content = content.WithString("role", "model")
		raw = content.JSON()
	}
	err := decodeContent(d, place{inElement, "assistant"}, raw, content)
	return fault.Under("$.content", err)
}

package provider

import (
	"encoding/json"
	"errors"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// foreign is the format of a Codec. A message keeps in the member of its mark
//
//	entry   the difference of the entry, in its first message
//	part    the difference of the part of a result
//	role    of the entry of a result, unless it is RoleTool
//	data    true for a result that is an array and not parts
//	joined  as in package origin
//
// and a call or a part its difference, or an item. See codec.Compare.
type foreign struct {
	Codec
	mark string
}

func (foreign) OwnMembers(string) []string { return nil }

// Failure returns nil: the codec reports failures.
func (foreign) Failure(jsontext.Object) error { return nil }

func (f foreign) HasForm(body jsontext.Object) bool {
	return f.Codec.Summarize(new(Summary), state.JSON(body.JSON()))
}

func (f foreign) Summarize(to *codec.Summary, body jsontext.Object) {
	said := Summary{Model: to.Model, ID: to.ID, StopReason: to.StopReason, Usage: to.Usage}
	f.Codec.Summarize(&said, state.JSON(body.JSON()))
	*to = codec.Summary{Model: said.Model, ID: said.ID, StopReason: said.StopReason, Usage: said.Usage}
}

func (f foreign) DecodeRequest(d *codec.Decoder, members jsontext.Object) (codec.Request, error) {
	body, err := f.Codec.DecodeRequest(state.JSON(members.JSON()))
	if err != nil {
		return codec.Request{}, err
	}
	settings, err := readText(body.Settings, "$")
	if err != nil {
		return codec.Request{}, err
	}
	r := codec.Request{Settings: settings}
	for i, element := range body.Tools {
		tool, err := f.decodeTool(element, jsontext.Index("$.tools", i))
		if err != nil {
			return codec.Request{}, err
		}
		r.Tools = append(r.Tools, tool)
	}
	return r, f.decodeEntries(d, body.Entries)
}

// decodeTool reads an element that offers a tool, with its difference.
func (f foreign) decodeTool(element state.JSON, path string) (codec.Tool, error) {
	members, err := readText(element, path)
	if err != nil {
		return codec.Tool{}, err
	}
	t, ok := f.Codec.DecodeTool(element)
	schema := codec.ValueOrNil(t.Schema)
	if kind := jsontext.Kind(schema); !ok || t.Name == "" || kind != "nothing" && kind != "object" {
		item := codec.ItemTool(members, []byte(element))
		item.Name = t.Name
		return item, nil
	}
	t = Tool{Name: t.Name, Description: t.Description, Schema: t.Schema}
	kept := codec.Compare([]byte(element), []byte(f.Codec.EncodeTool(t)))
	return codec.Tool{Name: t.Name, Description: t.Description, Schema: schema, Kept: kept}, nil
}

func (f foreign) EncodeRequest(e *codec.Encoder, r codec.Request, msgs []state.Message) (jsontext.Object, error) {
	entries, _ := f.encodeEntries(e, msgs)
	body := Body{Entries: entries, Settings: state.JSON(r.Settings.JSON())}
	for _, t := range r.Tools {
		element := t.Item()
		if element == nil {
			tool := Tool{Name: t.Name, Description: t.Description, Schema: state.JSON(t.Schema)}
			element = codec.Apply([]byte(f.Codec.EncodeTool(tool)), t.Kept)
		}
		body.Tools = append(body.Tools, state.JSON(element))
	}
	encoded, err := f.Codec.EncodeRequest(body)
	if err != nil {
		return nil, err
	}
	members, err := readText(encoded, "$")
	if err != nil {
		return nil, err
	}
	return members, checkSettings(r.Settings, members, "$", 1)
}

// checkSettings checks that a body has the settings. The codec may have set a
// member that is empty in the settings, and put members into an object.
func checkSettings(settings, body jsontext.Object, path string, depth int) error {
	ofBody := body.Lookup()
	for _, m := range settings {
		value := ofBody(m.Name)
		if value != nil && codec.EqualJSON(m.Value, value) {
			continue
		}
		path := jsontext.Path(path, m.Name)
		switch string(m.Value) {
		case "null", "[]", "{}", `""`:
			if value != nil {
				continue
			}
		default:
			if depth > 0 && jsontext.Kind(value) == "object" && jsontext.Kind(m.Value) == "object" {
				given, _ := jsontext.Members(m.Value) // both have been checked
				inner, _ := jsontext.Members(value)
				if err := checkSettings(given, inner, path, depth-1); err != nil {
					return err
				}
				continue
			}
			if value != nil {
				return &fault.Error{Path: path, Got: "is in the settings and is also made of the messages"}
			}
		}
		return &fault.Error{Path: path, Got: "is in the settings, but the codec has left it out"}
	}
	return nil
}

func (f foreign) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r, err := f.Codec.DecodeResponse(state.JSON(body.JSON()))
	if err != nil {
		return codec.Response{}, err
	}
	response := codec.Response{ID: r.ID, Created: r.Created}
	if r.StopReason != "" {
		response.Stop = jsontext.AppendQuote(nil, r.StopReason)
	}
	return response, f.decodeEntries(d, r.Entries)
}

func (f foreign) NewAssembler(emit func(codec.Delta)) codec.Assembler {
	return foreignAssembler{f.Codec.NewAssembler(func(d Delta) {
		emit(codec.Delta{Kind: codec.DeltaKind(d.Kind), Text: d.Text, Call: d.Call, ID: d.CallID, Name: d.Name})
	})}
}

type foreignAssembler struct{ Assembler }

func (a foreignAssembler) Add(event jsontext.Object) error {
	return a.Assembler.Add(state.JSON(event.JSON()))
}

func (a foreignAssembler) Result() (jsontext.Object, bool) {
	body, complete := a.Assembler.Result()
	if body == "" {
		return nil, false
	}
	members, err := readText(body, "$")
	if err != nil {
		return nil, false // as if nothing had come
	}
	return members, complete
}

// decodeEntries adds the messages of entries that a codec has read.
func (f foreign) decodeEntries(d *codec.Decoder, entries []Entry) error {
	for i, e := range entries {
		r := entryReader{entryCodec: f, mark: f.mark, d: d, entry: e}
		if err := r.decode(); err != nil {
			return fault.Under(jsontext.Index("$.entries", i), err)
		}
	}
	return nil
}

// encodeEntries returns the entries of messages, with their JSON, and how many
// there are before the codec splits them.
func (f foreign) encodeEntries(e *codec.Encoder, msgs []state.Message) (entries []Entry, count int) {
	w := entryWriter{entryCodec: f, Encoder: e}
	w.emit = func(written *writtenEntry) {
		one := written.Entry
		if len(one.Parts) == 0 {
			entries, count = append(entries, one), count+1
			return
		}
		encoded := f.EncodeEntry(one)
		for k, element := range encoded {
			if one.JSON = element; k == 0 {
				one.JSON = state.JSON(codec.Apply([]byte(element), written.kept.Object("entry")))
			}
			entries = append(entries, one)
		}
		if len(encoded) > 0 {
			count++
		} else {
			written.omit(e)
		}
	}
	w.write(msgs)
	return entries, count
}

// omit reports the messages of an entry that the codec cannot express.
func (w *writtenEntry) omit(e *codec.Encoder) {
	for _, i := range w.from {
		e.Omit(i, "message of role "+w.Role)
	}
}

func (f foreign) comparePart(role string, p, plain Part) (encoded Part, kept jsontext.Object, ok bool) {
	plain = withInput(plain)
	text, ok := f.EncodePart(role, plain)
	if p.JSON != "" {
		kept = codec.Compare([]byte(p.JSON), []byte(text))
	}
	plain.JSON = state.JSON(codec.Apply([]byte(text), kept))
	return plain, kept, ok
}

func (f foreign) compareEntry(e, plain Entry) jsontext.Object {
	if encoded := f.EncodeEntry(plain); e.JSON != "" && len(encoded) > 0 {
		return codec.Compare([]byte(e.JSON), []byte(encoded[0]))
	}
	return nil
}

func (f foreign) restorePart(role string, plain Part, kept jsontext.Object, _ bool) (Part, bool) {
	plain = withInput(plain)
	text, ok := f.EncodePart(role, plain)
	plain.JSON = state.JSON(codec.Apply([]byte(text), kept))
	return plain, ok
}

// readText returns the members of an object that a codec has made, none of an
// empty text.
func readText(text state.JSON, path string) (jsontext.Object, error) {
	if text == "" {
		return nil, nil
	}
	if err := jsontext.Check([]byte(text), jsontext.Limits{Depth: codec.BodyDepth}); err != nil {
		return nil, fault.Under(path, err)
	}
	members, err := jsontext.Members([]byte(text))
	return members, fault.Under(path, err)
}

// foreignError returns the error of this package for one of a codec.
func (f *Format) foreignError(err error) error {
	var failure *ResponseError
	var wrong *Error
	var unfit *json.UnmarshalTypeError
	switch {
	case errors.As(err, &failure):
		return &ResponseError{f.name, failure.Code, failure.Message}
	case errors.As(err, &wrong):
		return f.newError(wrong.Path, wrong.Problem)
	case errors.As(err, &unfit):
		path := "$"
		if unfit.Field != "" {
			path += "." + unfit.Field
		}
		return f.newError(path, "want a Go "+unfit.Type.String()) // unfit.Value may be a number
	}
	return f.newError("$", err.Error())
}

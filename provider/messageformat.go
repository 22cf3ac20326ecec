package provider

import (
	"errors"
	"reflect"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/transcript"
)

// MessageFormat translates messages of a framework for agents, of the type M,
// into messages of a state and back. It is made of a [MessageCodec], and keeps
// in the messages what is particular to the framework, as a [Format] does:
// messages that are decoded and encoded are the same. All formats of this
// package read them, with their media.
//
// The methods are safe for concurrent use.
type MessageFormat[M any] struct {
	name  string
	mark  string
	codec MessageCodec[M]
}

// MessageCodec translates between a message of a framework and an [Entry], whose
// parts are in no format's words:
//
//   - A text, the model's thinking, an image, a sound or a file is a part.
//   - A call is a part of an assistant. See [Arguments] for an input that the
//     framework has as a text.
//   - A result is a part of RoleTool. Its Content is a value, usually a text, or
//     it has Parts.
//   - What the entry and the part have no field for is their Extra.
//   - A part that only the framework has is PartOther, with its JSON.
//
// A codec translates and keeps nothing. Encode gets the entry that Decode has
// returned, for messages that did not change: a codec is right if Encode
// returns for it the message that it came from. Only a result without a name may
// have got that of its call. For other messages, what they say is in the entry,
// and there is no Extra.
//
// The functions must be pure and safe for concurrent use. Their errors must not
// contain values.
type MessageCodec[M any] struct {
	// Decode returns what a message says. An entry without parts is kept as its
	// Role and its Extra.
	Decode func(m M) (Entry, error)

	// Encode returns the messages for an entry. They are one for an entry of
	// Decode. It returns none for an entry that the framework cannot express,
	// which is reported.
	Encode func(e Entry) ([]M, error)

	// Carries reports whether the framework can express a part of an entry of a
	// role, or of a result for RoleTool (default: every part). Encode gets no
	// other parts. It is not asked about calls, results and PartOther.
	Carries func(role string, p Part) bool

	// OneResult says that a message of the framework has at most one result.
	// Otherwise Encode gets the results of a step in one entry.
	OneResult bool

	// Names, Reasons and FileNames say that Encode reads the Name and the
	// Reasoning of an entry and the Name of a file. Otherwise they are reported
	// if a message has them.
	Names, Reasons, FileNames bool
}

// NewMessageFormat returns a format for the messages of a framework. Messages
// keep what is the framework's own under the name: two formats of one name are
// the same format to them.
//
// Package providertest tests a codec.
func NewMessageFormat[M any](name string, c MessageCodec[M]) *MessageFormat[M] {
	if c.Carries == nil {
		c.Carries = func(string, Part) bool { return true }
	}
	return &MessageFormat[M]{name: name, mark: origin.ForeignMark(name), codec: c}
}

// Arguments returns the Input of a call whose arguments a framework has as a
// text. Input.Text returns the text again.
func Arguments(text string) state.JSON {
	switch {
	case text == "":
		return ""
	case jsontext.Kind([]byte(text)) == "object":
		return state.JSON(text)
	}
	return state.JSONText(text)
}

// String returns the name of the format.
func (f *MessageFormat[M]) String() string { return f.name }

// Decode returns what messages of the framework say as messages of a state. A
// message that says several things, such as a text and calls, becomes several.
// An error is an [Error] whose path begins with the index of the message.
func (f *MessageFormat[M]) Decode(msgs ...M) ([]state.Message, error) {
	d := codec.NewDecoder(f.mark)
	r := entryReader{keeper: f.codec.Carries, mark: f.mark, d: d, oneResult: f.codec.OneResult}
	var s settler
	for i, m := range msgs {
		var err error
		if r.entry, err = f.read(m); err == nil {
			if err = s.settleEntry(&r.entry); err == nil {
				err = r.decode()
			}
		}
		if err != nil {
			return nil, f.wrapError(i, err)
		}
	}
	return d.Messages, nil
}

// read returns the entry of a message.
func (f *MessageFormat[M]) read(m M) (Entry, error) {
	if v := reflect.ValueOf(&m).Elem(); v.Kind() == reflect.Pointer && v.IsNil() ||
		v.Kind() == reflect.Interface && v.IsNil() {
		return Entry{}, &fault.Error{Path: "$", Want: "a message", Got: "none"}
	}
	return f.codec.Decode(m)
}

// Encode returns messages of any origin as messages of the framework. A text and
// the calls behind it are one entry, and so are results. What the framework
// cannot express is left out and reported. A short text stands for a message of
// which nothing else would be left, as in [Format.EncodeRequest]. An Extra that
// the codec refuses is left out.
func (f *MessageFormat[M]) Encode(msgs ...state.Message) ([]M, []Omission, error) {
	if err := (&Format{name: f.name}).checkMessages(msgs, 0); err != nil {
		return nil, nil, err
	}
	members := []string{}
	if f.codec.Names {
		members = append(members, memberName)
	}
	if f.codec.Reasons {
		members = append(members, memberReasoning)
	}
	var left omissions
	e := newEncoder(f.mark, msgs, codec.Entries{}, &left, func(typ string) []string {
		if typ == codec.TypeOneCall {
			return nil
		}
		return members
	})
	w := entryWriter{
		keeper: f.codec.Carries, Encoder: e, members: members, oneResult: f.codec.OneResult,
		fileNames: f.codec.FileNames,
	}
	made := make([]M, 0, len(msgs))
	for _, written := range w.write(msgs) {
		if len(written.Parts) > 0 {
			written.Extra.json = state.JSON(written.kept.Object("entry").Get(keptExtra))
		}
		own, err := f.encode(written.Entry)
		switch {
		case err != nil:
			return nil, nil, f.wrapError(written.from[0], err)
		case len(own) == 0:
			written.omit(e)
		}
		made = append(made, own...)
	}
	return made, left.sorted(), nil
}

// encode returns the messages for an entry. What a message keeps of the framework
// may have been changed since: if the codec refuses it, what the message says
// counts, and an entry that says nothing is left out.
func (f *MessageFormat[M]) encode(e Entry) ([]M, error) {
	own, err := f.codec.Encode(e)
	if err == nil {
		return own, nil
	}
	if len(e.Parts) == 0 {
		return nil, nil
	}
	e.Extra, e.Parts = Extra{}, withoutExtra(e.Parts)
	return f.codec.Encode(e)
}

// Shape returns the shape of a message, with which package transcript groups
// and trims messages of the framework. A message that cannot be decoded has the
// zero Shape.
func (f *MessageFormat[M]) Shape(m M) transcript.Shape {
	e, err := f.read(m)
	if err != nil {
		return transcript.Shape{}
	}
	s := transcript.Shape{Role: e.Role, Reasoning: len(e.Parts) > 0}
	for _, p := range e.Parts {
		switch p.Kind {
		case PartCall:
			s.Calls = append(s.Calls, state.ToolCall{ID: p.ID, Name: p.Name, Input: p.Input})
		case PartResult:
			s.Answers = append(s.Answers, state.ToolCall{ID: p.ID, Name: p.Name})
		}
		s.Reasoning = s.Reasoning && p.Kind == PartThinking
	}
	return s
}

// KeepLast returns the trim that keeps at most n messages of the framework, as
// [transcript.KeepLast] does: no call loses its result.
func (f *MessageFormat[M]) KeepLast(n int) func([]M) []M {
	return func(msgs []M) []M {
		if len(msgs) <= n {
			return msgs
		}
		return transcript.Select(msgs, transcript.ShapesFunc(msgs, f.Shape).KeepLast(n))
	}
}

// wrapError returns the error of a message.
func (f *MessageFormat[M]) wrapError(i int, err error) error {
	err = (&Format{name: f.name, codec: &foreign{}}).wrapError(err)
	var wrong *Error
	if errors.As(err, &wrong) {
		wrong.Path = jsontext.Index("$", i) + strings.TrimPrefix(wrong.Path, "$")
	}
	return err
}

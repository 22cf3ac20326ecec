package provider

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// The members of what a message keeps for a part, besides the Extra.
const (
	keptExtra = "more" // reported to other formats
	keptInput = "input"
	keptName  = "name"
	keptKind  = "kind"
	keptMIME  = "mime"
	keptURL   = "url"
	keptInURL = "in_url" // whether the data was in the URL
)

// kinds are the names of the kinds of media.
var kinds = map[PartKind]string{PartImage: "image", PartAudio: "audio", PartFile: "file"}

// keeper is the Carries of a codec. A message keeps the Extra of the entry, of a
// call and of a part, and what of a part its own words do not say.
type keeper func(role string, p Part) bool

// keep returns what a message keeps of a part of which it says plain.
func (k keeper) keep(p, plain Part) (kept jsontext.Object) {
	if p.Extra.json != "" {
		kept = kept.With(keptExtra, []byte(p.Extra.json))
	}
	keep := func(name, text, plain string) {
		if text != plain {
			kept = kept.WithString(name, text)
		}
	}
	switch p.Kind {
	case PartCall:
		if p.spaced {
			kept = kept.WithString(keptInput, string(p.Input))
		}
	case PartImage, PartAudio, PartFile:
		keep(keptKind, kinds[p.Kind], kinds[plain.Kind])
		if _, _, ok := splitDataURL(p); ok {
			kept = kept.With(keptInURL, []byte("true"))
			keep(keptMIME, p.MIME, "")
		} else {
			keep(keptURL, p.URL, plain.URL)
			keep(keptMIME, p.MIME, plain.MIME)
		}
		keep(keptName, p.Name, plain.Name)
	}
	return kept
}

// restore returns the part that a message says with what it has kept. own is
// false for a message of another origin. It returns false for a part that the
// codec cannot express.
func (k keeper) restore(role string, plain Part, kept jsontext.Object, own bool) (Part, bool) {
	plain.Extra.json = state.JSON(kept.Get(keptExtra))
	switch plain.Kind {
	case PartCall:
		if !own {
			plain = withInput(plain)
		} else if input := state.JSON(kept.String(keptInput)); input != "" && compact(input) == string(plain.Input) {
			plain.Input = input
		}
		return plain, true
	case PartResult:
		return plain, true
	case PartImage, PartAudio, PartFile:
		if kept.Bool(keptInURL) && plain.Data != "" {
			plain.URL, plain.Data = "data:"+plain.MIME+";base64,"+plain.Data, ""
			plain.MIME = ""
		}
		for kind, name := range kinds {
			if kept.String(keptKind) == name {
				plain.Kind = kind
			}
		}
		for name, to := range map[string]*string{keptMIME: &plain.MIME, keptURL: &plain.URL, keptName: &plain.Name} {
			if kept.Get(name) != nil {
				*to = kept.String(name)
			}
		}
	}
	return plain, k(role, plain)
}

func compact(input state.JSON) string {
	return string(jsontext.AppendCompact(make([]byte, 0, len(input)), []byte(input)))
}

// settler checks what a codec has returned.
type settler struct{ jsontext.Checker }

func (s *settler) settleEntry(e *Entry) (err error) {
	if e.Extra, err = e.Extra.settle(&s.Checker); err != nil {
		return err
	}
	return s.settleParts(e.Parts, "$.parts")
}

func (s *settler) settleParts(parts []Part, path string) (err error) {
	for i := range parts {
		p := &parts[i]
		if p.Extra, err = p.Extra.settle(&s.Checker); err != nil {
			return err
		}
		if p.Input != "" {
			if s.check(p.Input) != nil {
				p.Input = state.JSONText(string(p.Input))
			}
			p.spaced = !s.IsCompact()
		}
		for _, value := range [...]state.JSON{p.Content, p.JSON} {
			if value == "" {
				continue
			}
			if err := s.check(value); err != nil {
				return fault.Under(jsontext.Index(path, i), err)
			}
		}
		if err := s.settleParts(p.Parts, jsontext.Index(path, i)+".parts"); err != nil {
			return err
		}
	}
	return nil
}

func (s *settler) check(value state.JSON) error {
	return s.Check([]byte(value), jsontext.Limits{Depth: codec.BodyDepth})
}

package aguistate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/workspace/page"
)

// versionKey is the member of the state that says which version it is: that of the
// page, and the branch of the thread that the client has asked for.
const versionKey = "$version"

// find finds the branch of the thread in which the client is: that of the version that
// it has, or without one the newest.
func (s *stream) find() (err error) {
	if json.Unmarshal(s.in.State[versionKey], &s.version) == nil && s.version != "" {
		version, branch := chat.CutBranch(s.version)
		s.version, s.thread = version, s.Thread(branch)
		return nil
	}
	s.thread, err = s.Newest()
	return err
}

// edits returns what the client has changed in the state that it has. Earlier
// values of shared fields are not known: if there are others now, what the client
// has made of those is left out.
func (s *stream) edits(base *page.Page) map[string]state.JSON {
	if base == nil {
		return nil
	}
	changed := map[string]state.JSON{}
	for name, was := range base.Fields {
		if _, stays := s.in.State[name]; !stays && was != "" {
			changed[name] = "null"
		}
	}
	for name, value := range s.in.State {
		was, present := base.Fields[name]
		if isUnknown := present && was == ""; name != versionKey && !isUnknown && (!present || !sameInClient(was, value)) {
			changed[name] = state.JSON(value)
		}
	}
	return changed
}

// sameInClient reports whether a client reads the same from both texts: its numbers
// have 53 bits.
func sameInClient(a state.JSON, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// showState sends what has changed in the state, or all of it to a client of which
// that is not known. What the client itself has changed stays as long as its message
// has not been handled, and nothing else is stored.
func (s *stream) showState() {
	fields := maps.Clone(s.page.Fields)
	if s.page.Version == s.base && s.waitsFor(s.target) {
		for name, value := range s.edited {
			if fields[name] = value; value == "null" {
				delete(fields, name)
			}
		}
	}
	fields[versionKey] = state.JSONText(s.page.Version + s.Branch(s.thread))
	if s.fields == nil {
		s.send(event{Type: "STATE_SNAPSHOT", Snapshot: encode(fields)})
	} else if patch := patchOf(s.fields, fields); len(patch) > 0 {
		s.send(event{Type: "STATE_DELTA", Delta: patch})
	}
	s.fields, s.isSeen = fields, true
}

// patchOf returns the operations that turn one state into another. The version is
// the last of them.
func patchOf(from, to map[string]state.JSON) (patch []operation) {
	names := slices.Sorted(maps.Keys(to))
	names = append(slices.DeleteFunc(names, func(name string) bool { return name == versionKey }), versionKey)
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[name]; !stays {
			patch = append(patch, operation{Op: "remove", Path: pointer(name)})
		}
	}
	for _, name := range names {
		was, present := from[name]
		if added, ok := appended(string(was), string(to[name])); ok && present {
			for _, element := range added {
				patch = append(patch, operation{"add", pointer(name) + "/-", element})
			}
		} else if was != to[name] {
			patch = append(patch, operation{"add", pointer(name), json.RawMessage(to[name])}) // replaces as well
		}
	}
	return patch
}

// appended returns the elements that a list has more at its end than another one.
func appended(was, now string) (elements []json.RawMessage, ok bool) {
	if !strings.HasPrefix(was, "[") || len(now) < len(was) {
		return nil, false
	}
	rest, ok := strings.CutPrefix(now, was[:len(was)-1])
	if !ok || was != "[]" && rest[0] != ',' {
		return nil, false
	}
	err := json.Unmarshal([]byte("["+strings.TrimPrefix(rest, ",")), &elements)
	return elements, err == nil
}

func pointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

package aguistate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// versionKey is the member of the state that says which version it is.
const versionKey = "$version"

// versionOf names the version of a view. It differs from that of a workspace of
// the same user that was deleted.
func versionOf(v *workspace.View) string { return fmt.Sprintf("%d-%.16s", v.Version, v.Chain) }

// version names the version of the view that was read last, with that of what the
// user's threads share and the branch of the thread that the client has asked for.
func (s *stream) version() string {
	return versionOf(s.view) + sharedVersion(s.view) + strings.TrimPrefix(s.in.ThreadID, s.origin)
}

// sharedVersion names the values of the shared fields of a view, as the client
// reads them. It is empty if the schema has none.
func sharedVersion(v *workspace.View) string {
	names := sharedFields(v)
	if len(names) == 0 {
		return ""
	}
	fields, sum := fieldsOf(v, ""), sha256.New()
	for _, name := range names {
		fmt.Fprintf(sum, "%q %q ", name, fields[name])
	}
	return fmt.Sprintf(".%.8x", sum.Sum(nil))
}

// sharedFields returns the names of the shared fields of a view.
func sharedFields(v *workspace.View) (names []string) {
	for _, info := range v.State().Fields() {
		if info.Shared {
			names = append(names, info.Name)
		}
	}
	return names
}

// fieldsOf returns the JSON of the fields of a view, without secrets, references
// and the conversation.
func fieldsOf(v *workspace.View, version string) map[string]state.JSON {
	st := v.State()
	fields := map[string]state.JSON{versionKey: state.JSONText(version)}
	for _, info := range st.Fields() {
		if !info.Set || info.Secret || info.Reference || info.Name == state.Messages.Name {
			continue
		}
		value, ok := st.KV().JSON(info.Name)
		if !ok {
			continue
		}
		value = state.JSON(v.Redact(string(value)))
		if !value.Valid() { // a secret is a piece of JSON
			value = `"[SECRET]"`
		}
		fields[info.Name] = value
	}
	return fields
}

// showState sends what has changed in the state, or all of it to a client of which
// that is not known.
func (s *stream) showState() {
	fields := fieldsOf(s.view, s.version())
	if fields[versionKey] == state.JSONText(s.base) {
		for _, info := range s.view.State().Fields() {
			switch value, edited := s.overlay[info.Name]; {
			case !edited || info.Secret:
			case value == "null":
				delete(fields, info.Name)
			default:
				fields[info.Name] = value
			}
		}
	}
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

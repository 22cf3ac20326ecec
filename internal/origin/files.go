package origin

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// FileScheme begins the URL of a file of the user, as package workspace keeps it.
const FileScheme = "agent-file:"

var fileID = regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`)

// FileID returns what follows a prefix, such as FileScheme, in the URL of a file.
func FileID(prefix, url string) (id string, ok bool) {
	id, ok = strings.CutPrefix(url, prefix)
	return id, ok && fileID.MatchString(id)
}

// FilePart returns a part with a file, whose data are base64, in the words of OpenAI,
// or of Gemini where those have no place for it.
func FilePart(typ, name, data string) []byte {
	family, format, _ := strings.Cut(typ, "/")
	object := func(kind, member string, o jsontext.Object) []byte {
		return jsontext.Object{}.WithString("type", kind).With(member, o.JSON()).JSON()
	}
	url := "data:" + typ + ";base64," + data
	switch family {
	case "image":
		return object("image_url", "image_url", jsontext.Object{}.WithString("url", url))
	case "audio":
		format = strings.TrimPrefix(strings.TrimPrefix(format, "x-"), "vnd.")
		if format == "mpeg" {
			format = "mp3"
		}
		return object("input_audio", "input_audio", jsontext.Object{}.WithString("data", data).WithString("format", format))
	case "video":
		inline := jsontext.Object{}.WithString("mimeType", typ).WithString("data", data)
		return jsontext.Object{}.With("inlineData", inline.JSON()).JSON()
	}
	if name == "" {
		name = "file"
	}
	return object("file", "file", jsontext.Object{}.WithString("filename", name).WithString("file_data", url))
}

// ReplaceFiles returns a message with other parts in place of those that are files of
// the user, the last one first. It returns the message itself if it has none: an array
// in which a result has anything but parts is data.
func ReplaceFiles(m state.Message, replace func(id string) (part []byte)) state.Message {
	if !strings.Contains(string(m.Raw()), FileScheme) {
		return m
	}
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	parts, _ := jsontext.Elements(members.Get("content"))
	_, isResult := m.(state.ToolResultMessage)
	made := slices.Clone(parts)
	for i, raw := range slices.Backward(parts) {
		part, _ := jsontext.Members(raw) // none if it is not an object
		if isResult && !IsContent(part) {
			return m
		}
		if !isMedium(part) {
			continue
		}
		for _, said := range Said(raw) {
			if id, ok := FileID(FileScheme, said); ok {
				made[i] = replace(id)
				break
			}
		}
	}
	shown, err := WithMember(m, "content", jsontext.Array(made))
	if err != nil || len(parts) == 0 {
		return m
	}
	return shown
}

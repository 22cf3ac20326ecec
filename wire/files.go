package wire

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
)

// files are those of the user in a request, by their ids. Marks stand for their data
// until it is sent, so that what is kept of a request does not grow by them.
type files map[string]runctx.File

// markStart begins the mark of a file. Nobody who writes a message knows it.
var markStart = rand.Text()[:24]

// mark returns what stands for a file: a text, which has no padding as base64.
func mark(id string) string { return markStart + id + "." }

// open returns messages with marks in place of files, and notes the files. What is not
// sent is reported.
func (f files) open(
	ctx context.Context, msgs []state.Message,
) (shown []state.Message, omitted []provider.Omission, err error) {
	shown, left, err := runctx.OpenFiles(ctx, msgs, func(id string, file runctx.File) string {
		f[id] = file
		return base64.StdEncoding.EncodeToString([]byte(mark(id)))
	})
	for _, i := range left {
		omitted = append(omitted, provider.Omission{Message: i, What: "file of the user"})
	}
	return shown, omitted, err
}

// mask masks the secrets in the data. The rest of a request has none by then.
func (f files) mask(masks *state.Redactor) {
	for id, file := range f {
		file.Data = []byte(masks.Redact(string(file.Data)))
		f[id] = file
	}
}

// fill returns a body with the data in place of the marks.
func (f files) fill(body []byte) []byte {
	return f.replace(body, func(_ string, file runctx.File) (data, text string) {
		if strings.HasPrefix(file.Type, "text/") {
			quoted := jsontext.AppendQuote(nil, string(file.Data))
			text = string(quoted[1 : len(quoted)-1])
		}
		return base64.StdEncoding.EncodeToString(file.Data), text
	})
}

// name returns a body with the URLs of files in place of the marks, as the messages
// have them.
func (f files) name(body []byte) []byte {
	return f.replace(body, func(id string, _ runctx.File) (data, text string) {
		return origin.FileScheme + id, origin.FileScheme + id
	})
}

// replace replaces the marks, which are base64, or a text where a format takes that.
func (f files) replace(body []byte, by func(id string, file runctx.File) (data, text string)) []byte {
	if len(f) == 0 {
		return body
	}
	var pairs []string
	for id, file := range f {
		data, text := by(id, file)
		pairs = append(pairs, base64.StdEncoding.EncodeToString([]byte(mark(id))), data, mark(id), text)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(body)))
}

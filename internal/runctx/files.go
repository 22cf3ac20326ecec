package runctx

import (
	"context"
	"errors"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// File is a file of a user.
type File struct {
	Type, Name string
	Data       []byte
}

// ErrNoFile is the error of a file that cannot be sent, now or later.
var ErrNoFile = errors.New("the user has no such file")

type filesKey struct{}

// WithFiles returns a context in which the files of a user are opened by their ids.
func WithFiles(ctx context.Context, open func(ctx context.Context, id string) (File, error)) context.Context {
	return context.WithValue(ctx, filesKey{}, open)
}

// maxSentFiles is how many bytes of files a request has. A message names a file in a
// few bytes, and may do so many times.
const maxSentFiles = 32 << 20

// noFile is what a model reads in place of a file that is not sent.
const noFile = `{"type":"text","text":"[A picture or file stood here. It is not sent: ` +
	`it was deleted, or the request would be too large.]"}`

// OpenFiles returns messages with the files of the user to which they refer, whose data
// encode returns. A text stands for those that are gone, and from the end on for all
// before maxSentFiles are exceeded; left has the indexes of their messages. The error
// is that of a file that cannot be read now.
func OpenFiles(
	ctx context.Context, msgs []state.Message, encode func(id string, f File) string,
) (shown []state.Message, left []int, err error) {
	open, _ := ctx.Value(filesKey{}).(func(context.Context, string) (File, error))
	known, room := map[string]File{}, maxSentFiles
	shown = msgs
	for i, m := range slices.Backward(msgs) {
		made := origin.ReplaceFiles(m, func(id string) []byte {
			f, ok := known[id]
			if !ok && room > 0 && err == nil && open != nil {
				if f, err = open(ctx, id); errors.Is(err, ErrNoFile) {
					f, err = File{}, nil
				}
				known[id] = f
			}
			if len(f.Data) == 0 {
				left = append(left, i)
				return []byte(noFile)
			}
			if room -= len(f.Data); room < 0 {
				room, left = 0, append(left, i)
				return []byte(noFile)
			}
			return origin.FilePart(f.Type, f.Name, encode(id, f))
		})
		if err != nil {
			return nil, nil, err
		}
		if made == m {
			continue
		}
		if &shown[0] == &msgs[0] {
			shown = slices.Clone(msgs)
		}
		shown[i] = made
	}
	return shown, left, nil
}

package statehttp

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// shownTypes are those of files that a browser shows and can do nothing with. Others
// are downloads without a type: a file of the user is no script, style or page.
var shownTypes = strings.Fields("image/png image/jpeg image/gif image/webp image/avif " +
	"audio/mpeg audio/wav audio/ogg audio/webm audio/mp4 video/mp4 video/webm")

// filePatience is the time in which a client takes a file.
const filePatience = 2 * time.Minute

// addFile stores the body of a request, with the name that the address has.
func (c *call) addFile() (any, error) {
	data, ok := c.guard.Read(c.w, c.r, workspace.MaxFile)
	if !ok {
		return nil, errAnswered
	}
	f := work.File{Type: c.r.Header.Get("Content-Type"), Name: c.r.URL.Query().Get("name"), Data: data}
	if f.Name != "" {
		f.Name = path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
	}
	url, err := c.m.AddFile(c.ctx, c.who.User, f)
	if err != nil {
		return nil, err
	}
	typ, _, _ := mime.ParseMediaType(f.Type) // it was stored
	return page.Media{Type: typ, URL: c.pages.FileAt(url), Name: f.Name}, nil
}

// file answers with a file. Browsers keep it, and ask each time whether it is there.
func (c *call) file() (any, error) {
	id := c.r.PathValue("file")
	f, err := c.m.File(c.ctx, c.who.User, origin.FileScheme+id)
	if errors.Is(err, workspace.ErrInvalid) {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	disposition := "inline"
	if !slices.Contains(shownTypes, f.Type) {
		f.Type, disposition = "application/octet-stream", "attachment"
	}
	var name map[string]string
	if f.Name != "" {
		name = map[string]string{"filename": f.Name}
	}
	for header, value := range map[string]string{
		"Content-Type":                 f.Type,
		"Content-Disposition":          mime.FormatMediaType(disposition, name),
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "private, no-cache",
		"ETag":                         `"` + id + `"`,
	} {
		c.w.Header().Set(header, value)
	}
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(filePatience)) // not each server has one
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	http.ServeContent(c.w, c.r, "", time.Time{}, bytes.NewReader(f.Data))
	return nil, nil
}

package inspect

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The ways to change a value. An append goes through the handler of a field, as
// writes of agents do: a list appends, a sum adds.
const (
	editReplace = "replace"
	editApply   = "apply"
	editDelete  = "delete"
)

// draft is a change that was shown and not yet made.
type draft struct {
	Memory  bool // Name is a key of the memory, not a field
	Name    string
	Edit    string
	Value   string // JSON, or the text of a memory entry or of a secret string
	Secret  bool
	Version uint64 // that was seen
	Actor   string // who has seen the preview, and may make the change
}

// subject is what a form changes.
type subject struct {
	field state.FieldInfo
	entry workspace.MemoryEntry
	known bool // the field or the entry exists
}

// editData is the data of the form for a value, and of the preview of a change.
type editData struct {
	Memory  bool   `json:"memory,omitempty"`
	Name    text   `json:"name"`
	Link    string `json:"-"`
	Edit    string `json:"edit"`
	Type    text   `json:"type,omitempty"`
	Handler text   `json:"handler,omitempty"` // that an edit can go through
	Secret  bool   `json:"secret,omitempty"`
	Set     bool   `json:"set"`
	Version uint64 `json:"version"`
	// Present is what is stored, Fill what the form begins with. Partly is set
	// if the form cannot show all of it.
	Present value  `json:"present"`
	Fill    string `json:"-"`
	Partly  bool   `json:"partly,omitempty"`
	// Problem is why the change was not made, and Yours what was typed.
	Problem string `json:"problem,omitempty"`
	Yours   *value `json:"yours,omitempty"`
	Busy    bool   `json:"busy,omitempty"` // a run is under way
	// Draft is the change that a preview shows, and Fields is what it does.
	Draft  string      `json:"-"`
	Fields []fieldDiff `json:"fields,omitempty"`
}

// editForm shows the form for a field or a memory entry.
func (h *Handler) editForm(c *call) (*page, error) {
	d := draft{Name: c.query.Get("field"), Edit: c.query.Get("edit")}
	if c.query.Has("memory") {
		d.Memory, d.Name = true, c.query.Get("memory")
	}
	s, err := c.openNow()
	if err != nil {
		return nil, err
	}
	return c.editPage(s, d, "", 0)
}

// openNow reads the present of the workspace.
func (c *call) openNow() (*shown, error) {
	c.query.Del("at")
	c.query.Del("as")
	return c.open()
}

// subject finds what a draft changes, and completes the draft.
func (c *call) subject(s *shown, d *draft) (sub subject, err error) {
	switch {
	case d.Edit == "":
		d.Edit = editReplace
	case d.Edit != editReplace && d.Edit != editDelete && (d.Edit != editApply || d.Memory):
		return sub, &httpError{http.StatusBadRequest, "There is no such change."}
	}
	if d.Memory {
		sub.entry, sub.known = s.now.Memory().Get(d.Name)
		d.Secret = d.Secret || sub.entry.Secret
		if d.Edit == editDelete && !sub.known {
			return sub, &httpError{http.StatusNotFound, "There is no such memory entry."}
		}
		return sub, nil
	}
	fields := s.now.State().Fields()
	i := slices.IndexFunc(fields, func(f state.FieldInfo) bool { return f.Name == d.Name })
	if i < 0 || d.Name == state.Messages.Name {
		return sub, &httpError{http.StatusNotFound, "There is no such field."}
	}
	sub.field, sub.known = fields[i], true
	d.Secret = sub.field.Secret
	return sub, nil
}

// editPage shows the form for a draft. If there is a problem, the form shows the
// value that was typed beside the present one.
func (c *call) editPage(s *shown, d draft, problem string, status int) (*page, error) {
	sub, err := c.subject(s, &d)
	if err != nil {
		return nil, err
	}
	data := editData{
		Memory: d.Memory, Name: s.mask.id(d.Name), Edit: d.Edit, Secret: d.Secret, Version: s.Newest, Busy: s.now.Run != nil,
	}
	if string(data.Name) == d.Name {
		data.Link = d.Name
	}
	present := ""
	if d.Memory {
		data.Set, present = sub.known, sub.entry.Value
	} else {
		data.Set, data.Type = sub.field.Set, s.mask.name(sub.field.Type)
		if sub.field.Handler != "replace" {
			data.Handler = s.mask.name(sub.field.Handler)
		}
		if !d.Secret {
			j, _ := s.now.State().KV().JSON(d.Name)
			present = string(j)
		}
	}
	switch {
	case d.Secret && data.Set:
		data.Present = value{Text: secretValue}
	case data.Set:
		data.Present = s.mask.line(present)
		if d.Edit == editReplace {
			data.Fill, data.Partly = s.fill(present, d.Memory)
		}
	}
	if problem != "" {
		data.Problem = problem
		if !d.Secret && d.Edit != editDelete {
			yours := s.mask.line(d.Value)
			data.Yours = &yours
			data.Fill, data.Partly = s.fill(d.Value, true)
		}
	}
	return &page{Name: "edit", Title: "Edit", Tab: "actions", Head: s.head, Data: data, status: status}, nil
}

// fill returns what a form begins with for a value, or that it cannot show all
// of the value: who sends back what was masked or cut off would store that.
func (s *shown) fill(v string, plain bool) (fill string, partly bool) {
	if strings.Contains(v, secretValue) || s.mask.whole(v) != v || len(v) > openBytes {
		return "", true
	}
	if plain {
		return v, safetext.Visible(v, true) != v
	}
	indented, all := indent(v, openBytes, openNodes)
	if !all {
		return "", true
	}
	// What does not show can stand only in strings.
	var b []byte
	for _, r := range indented {
		if r == '\n' || safetext.Shows(r, len(string(r))) {
			b = append(b, string(r)...)
		} else {
			b = safetext.AppendEscape(b, r)
		}
	}
	return string(b), false
}

// errNothing says that a change would change nothing.
var errNothing = errors.New("inspect: nothing would change")

// editPreview shows what a change does. It stores nothing.
func (h *Handler) editPreview(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	version, err := strconv.ParseUint(form("version"), 10, 64)
	if err != nil {
		return nil, &httpError{http.StatusBadRequest, "The form has no version."}
	}
	d := draft{
		Memory: form("kind") == "memory", Name: form("name"), Edit: form("edit"), Value: form("value"),
		Secret: form("secret") != "", Version: version, Actor: c.access.Actor,
	}
	if d.Memory {
		d.Value = strings.ReplaceAll(d.Value, "\r\n", "\n") // browsers send that
	}
	s, err := c.openNow()
	if err != nil {
		return nil, err
	}
	if d.Version != s.Newest {
		return c.editPage(s, d, movedOn, http.StatusConflict)
	}
	sub, err := c.subject(s, &d)
	if err != nil {
		return nil, err
	}
	diff, err := c.try(s, sub, d)
	if err != nil {
		return c.editPage(s, d, s.problem(d, err), http.StatusUnprocessableEntity)
	}
	data := editData{
		Memory: d.Memory, Name: s.mask.id(d.Name), Edit: d.Edit, Secret: d.Secret, Version: s.Newest, Busy: s.now.Run != nil,
		Draft: h.seal("draft", c.user, d), Fields: diff,
	}
	return &page{Name: "preview", Title: "Confirm", Tab: "actions", Head: s.head, Data: data}, nil
}

// try returns what a change does to a copy of the workspace.
func (c *call) try(s *shown, sub subject, d draft) ([]fieldDiff, error) {
	if d.Memory {
		diff := fieldDiff{Name: s.mask.id(d.Name), Secret: d.Secret}
		if !d.Secret {
			if sub.known {
				before := s.mask.line(sub.entry.Value)
				diff.Before = &before
			}
			if d.Edit != editDelete {
				after := s.mask.line(d.Value)
				diff.After = &after
			}
			if sub.known && d.Edit != editDelete && sub.entry.Value == d.Value {
				return nil, errNothing
			}
		}
		return []fieldDiff{diff}, nil
	}
	before := s.now.State()
	after := before.Fork()
	if err := d.apply(after, nil); err != nil {
		return nil, err
	}
	// A Validate function may write other fields.
	var diffs []fieldDiff
	for _, f := range after.Fields() {
		was, had := before.KV().JSON(f.Name)
		is, has := after.KV().JSON(f.Name)
		if f.Name == d.Name && f.Secret || had != has || was != is {
			diffs = append(diffs, newFieldDiff(s.mask, [2]*state.State{before, after}, f.Name))
		}
	}
	if diffs == nil {
		return nil, errNothing
	}
	return diffs, nil
}

// apply makes the change of a draft.
func (d draft) apply(st *state.State, memory *workspace.Memory) error {
	var err error
	switch {
	case d.Memory && d.Edit == editDelete:
		_, err = memory.Delete(d.Name)
	case d.Memory && d.Secret:
		err = memory.SetSecret(d.Name, d.Value)
	case d.Memory:
		err = memory.Set(d.Name, d.Value)
	case d.Edit == editDelete:
		_, err = st.KV().Delete(d.Name)
	case d.Edit == editApply:
		err = st.KV().Set(d.Name, d.json(st))
	default:
		err = st.KV().Replace(d.Name, d.json(st))
	}
	return err
}

// json returns the value of a draft. A secret string is typed without quotes.
func (d draft) json(st *state.State) any {
	isString := func(f state.FieldInfo) bool { return f.Name == d.Name && f.Type == "string" }
	if d.Secret && slices.ContainsFunc(st.Schema().Fields(), isString) {
		return d.Value
	}
	return state.JSON(strings.TrimSpace(d.Value))
}

const (
	movedOn  = "The workspace has changed since you began. Look at what it has now, and confirm or change yours."
	underRun = "A run is under way: nothing else can change the workspace meanwhile. Try again when it has ended, or cancel it."
)

// problem returns why a value was refused, in words that can be shown. A
// Validate function may repeat a secret that is not stored yet.
func (s *shown) problem(d draft, err error) string {
	switch {
	case err == errNothing:
		return "That changes nothing."
	case d.Secret:
		return "The value was refused."
	}
	return "The value was refused: " + string(s.mask.line(err.Error()).Text)
}

// editApply makes the change that a preview has shown.
func (h *Handler) editApply(c *call) (*page, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	var d draft
	if !h.unseal("draft", c.user, form("draft"), &d) || d.Actor != c.access.Actor {
		return nil, errForm
	}
	var refused error
	err = h.manager.UpdateAt(c.ctx(), c.user, d.Version, func(w *workspace.Workspace) error {
		refused = d.apply(w.State().WithCause(c.cause()), w.Memory())
		return refused
	})
	c.audit(d.Edit, err)
	var problem string
	status := http.StatusConflict
	switch {
	case err == nil:
		n := note{Did: "The value was stored.", Then: "The next run begins with it.", Version: d.Version + 1}
		if d.Edit == editDelete {
			n.Did, n.Then = "The value was deleted.", "The next run begins without it."
		}
		return c.finish(n)
	case errors.Is(err, store.ErrConflict):
		problem = movedOn
	case errors.Is(err, workspace.ErrBusy):
		problem = underRun
	case refused == nil:
		return nil, err
	}
	s, openErr := c.openNow()
	if openErr != nil {
		return nil, openErr
	}
	if problem == "" {
		problem, status = s.problem(d, refused), http.StatusUnprocessableEntity
	}
	return c.editPage(s, d, problem, status)
}

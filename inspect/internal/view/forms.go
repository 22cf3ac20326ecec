package view

import (
	"context"
	"fmt"
	"strconv"
)

// Visible returns a text of the program, or the id of a user, as it can be shown.
func Visible(s string) string { return visible(s, false) }

// VisibleLines is Visible for a text with lines.
func VisibleLines(s string) string { return visible(s, true) }

// NameHead returns the head of a page that says nothing of a workspace but its
// user.
func NameHead(user string) *Head {
	name, thread := namesOf(user)
	return &Head{User: name, Thread: thread, ID: user}
}

// Forget forgets what was read of a workspace.
func (src *Source) Forget(user string) { src.views.drop(user) }

// Named returns the head of a workspace, and an id or a name of its content as it
// can be shown.
func (src *Source) Named(ctx context.Context, q Query, id string) (*Head, string, error) {
	q.Values = present(q)
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, "", err
	}
	return s.Head, string(s.mask.id(id)), nil
}

// Lost returns the head of a workspace, and what is lost if it is emptied or
// deleted.
func (src *Source) Lost(ctx context.Context, q Query, deleted bool) (*Head, []string, error) {
	q.Values = present(q)
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	set := 0
	for _, f := range s.now.State().Fields() {
		if f.Set {
			set++
		}
	}
	list := []string{
		count(set, "field") + " with a value, the conversation and the results",
		"the memory: " + count(len(s.now.Memory().List()), "value"),
		"all versions up to " + strconv.FormatUint(s.Newest, 10),
	}
	if s.now.Run != nil {
		list = append(list, "the run that is under way, with its message")
	}
	if n := len(s.now.Queue); n > 0 {
		list = append(list, count(n, "message")+" in the queue, never handled")
	}
	if n := len(s.now.DeadLetters); n > 0 {
		list = append(list, count(n, "dead letter"))
	}
	if deleted {
		list = append(list, "the ids of handled messages: if one is sent again, it is handled again",
			"the values that the program keeps for this user beside the workspace")
	}
	return s.Head, list, nil
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}

package page_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// texts returns what is said in a thread.
func (d *desk) texts(thread string) (list []string) {
	time.Sleep(time.Second)
	synctest.Wait()
	p, err := d.pages.Read(d.t.Context(), thread)
	require.NoError(d.t, err)
	for _, item := range p.Items {
		list = append(list, item.Parts[0].Text)
	}
	return list
}

// A message with another text in the place of one, or the same once more, is a
// branch with what was said before. The thread stays.
func TestBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.handle("1", "title:one say:a")
		d.handle("2", "title:two say:b")
		d.handle("3", "say:c")
		before := d.texts(thread)
		for name, test := range map[string]struct {
			in   page.Input
			want []string
		}{
			"edited":                    {page.Input{ID: "x", Content: state.UserText("say:B"), Replaces: "2"}, []string{"title:one say:a", "a", "say:B", "B"}},
			"edited, of the same id":    {page.Input{ID: "2", Content: state.UserText("say:B")}, []string{"title:one say:a", "a", "say:B", "B"}},
			"the first":                 {page.Input{ID: "1", Content: state.UserText("say:A")}, []string{"say:A", "A"}},
			"answered again":            {page.Input{Replaces: "3"}, []string{"title:one say:a", "a", "title:two say:b", "b", "say:c", "c"}},
			"answered again, by its id": {page.Input{ID: "3", Replaces: "3"}, []string{"title:one say:a", "a", "title:two say:b", "b", "say:c", "c"}},
		} {
			sent, err := d.pages.Send(t.Context(), thread, test.in)
			require.NoError(t, err, name)
			require.NotEqual(t, thread, sent.Thread, name)
			require.Equal(t, test.want, d.texts(sent.Thread), name)
			require.Equal(t, before, d.texts(thread), name)
			if test.in.ID != "" {
				again, err := d.pages.Send(t.Context(), thread, test.in)
				require.NoError(t, err, name)
				require.Equal(t, sent.Thread, again.Thread, name)
				require.Equal(t, workspace.StatusDuplicate, again.Outcome.Status)
				require.Equal(t, test.want, d.texts(sent.Thread), name)
			}
		}
		branches, err := d.pages.Branches(t.Context(), thread)
		require.NoError(t, err)
		places := map[int]int{}
		for _, b := range branches {
			require.Equal(t, "1", b.Of)
			places[b.Number]++
		}
		require.Equal(t, map[int]int{1: 1, 3: 2, 5: 2}, places)
		in, err := d.pages.Send(t.Context(), workspace.Thread("ann", branches[0].Thread), page.Input{ID: "y", Content: state.UserText("say:deep")})
		require.NoError(t, err)
		deep, err := d.pages.Send(t.Context(), in.Thread, page.Input{ID: "z", Content: state.UserText("say:deeper"), Replaces: "y"})
		require.ErrorIs(t, err, workspace.ErrNotFound, "it is not stored yet")
		d.texts(in.Thread)
		deep, err = d.pages.Send(t.Context(), in.Thread, page.Input{ID: "z", Content: state.UserText("say:deeper"), Replaces: "y"})
		require.NoError(t, err)
		all, err := d.pages.Branches(t.Context(), thread)
		require.NoError(t, err)
		require.Len(t, all, len(branches)+1)
		_, name := workspace.SplitThread(deep.Thread)
		require.Contains(t, all, page.Branch{Thread: name, Of: branches[0].Thread, Number: all[1].Number})
	})
}

// A fork has ids of its own, but for those of the person's messages.
func TestIDsOfBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.handle("1", "say:a")
		d.handle("2", "say:b")
		sent, err := d.pages.Send(t.Context(), thread, page.Input{ID: "2", Content: state.UserText("say:B")})
		require.NoError(t, err)
		d.texts(sent.Thread)
		branch, err := d.pages.Read(t.Context(), sent.Thread)
		require.NoError(t, err)
		ids := map[string]bool{}
		for _, item := range d.read().Items {
			ids[item.ID] = true
		}
		for _, item := range branch.Items {
			require.Equal(t, item.Role == "user", ids[item.ID], item.ID)
		}
	})
}

// A message that is sent again is handled once, and its fields are stored with it by
// rights.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		in := page.Input{ID: "1", Content: state.UserText("say:a"), Fields: map[string]state.JSON{"title": `"mine"`}}
		for range 3 {
			sent, err := d.pages.Send(t.Context(), thread, in)
			require.NoError(t, err)
			require.Equal(t, thread, sent.Thread)
		}
		require.Equal(t, []string{"say:a", "a"}, d.texts(thread))
		require.Equal(t, state.JSON(`"mine"`), d.read().Fields["title"])

		for _, fields := range []map[string]state.JSON{{"notes": `["x"]`}, {"messages": `[]`}} {
			_, err := d.pages.Send(t.Context(), thread, page.Input{Fields: fields})
			require.ErrorIs(t, err, state.ErrDenied)
			_, err = d.pages.Send(t.Context(), thread, page.Input{Content: state.UserText("say:x"), Fields: fields})
			require.ErrorIs(t, err, state.ErrDenied)
		}
		d.pages.Write = []string{"notes", "messages"}
		_, err := d.pages.Send(t.Context(), thread, page.Input{Fields: map[string]state.JSON{"notes": `["x"]`, "title": "null"}})
		require.NoError(t, err)
		require.Equal(t, map[string]state.JSON{"notes": `["x"]`}, d.read().Fields)
		_, err = d.pages.Send(t.Context(), thread, page.Input{Fields: map[string]state.JSON{"messages": `[]`}})
		require.ErrorIs(t, err, state.ErrDenied)
		_, err = d.pages.Send(t.Context(), thread, page.Input{Fields: map[string]state.JSON{"title": `{`}})
		require.ErrorIs(t, err, workspace.ErrInvalid)
		_, err = d.pages.Send(t.Context(), thread, page.Input{})
		require.ErrorIs(t, err, workspace.ErrInvalid)
		_, err = d.pages.Send(t.Context(), thread, page.Input{Replaces: "nothing"})
		require.ErrorIs(t, err, workspace.ErrNotFound)
	})
}

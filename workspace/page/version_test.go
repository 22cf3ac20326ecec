package page_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// An earlier version of a page is what it was, but for shared fields that others have
// changed since.
func TestReadAt(t *testing.T) {
	d := newDesk(t)
	d.handle("a", "title:one city:Rome say:one")
	before, err := d.pages.Read(t.Context(), thread)
	require.NoError(t, err)
	d.handle("b", "title:two say:two")
	was, err := d.pages.ReadAt(t.Context(), thread, before.Version)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(before.Items, was.Items))
	require.Equal(t, before.Fields, was.Fields)

	d.handle("c", "city:Oslo")
	was, err = d.pages.ReadAt(t.Context(), thread, before.Version)
	require.NoError(t, err)
	require.Equal(t, map[string]state.JSON{"title": `"one"`, "city": ""}, was.Fields)
	for _, version := range []string{"", "x", "1-0123456789abcdef", "999-0123456789abcdef", "-", before.Version[1:]} {
		_, err := d.pages.ReadAt(t.Context(), thread, version)
		require.ErrorIs(t, err, workspace.ErrInvalid, version)
	}
	_, err = d.pages.ReadAt(t.Context(), workspace.Thread("ann", "2"), before.Version)
	require.ErrorIs(t, err, workspace.ErrInvalid)
}

// The newest branch is the one in which something was said last.
func TestNewest(t *testing.T) {
	d := newDesk(t)
	newest := func() string {
		id, err := d.pages.Newest(t.Context(), thread)
		require.NoError(t, err)
		return id
	}
	require.Equal(t, thread, newest())
	d.handle("a", "say:one")
	require.Equal(t, thread, newest())
	branch, err := d.pages.Send(t.Context(), thread, page.Input{ID: "b", Replaces: "a", Content: state.UserText("say:two")})
	require.NoError(t, err)
	_, err = d.Await(t.Context(), branch.Thread, "b")
	require.NoError(t, err)
	require.Equal(t, branch.Thread, newest())
	time.Sleep(2 * time.Millisecond) // times are stored in milliseconds
	d.handle("c", "say:three")
	require.Equal(t, thread, newest())
}

package page_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// A page shows what Read returns, whatever has happened and wherever its connection
// was cut: at every change, now and then, or never. While an answer is being made, a
// page that has just come shows the same as those that were there.
func TestPagesConverge(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range uint64(effort.Runs(60)) {
		synctest.Test(t, func(t *testing.T) { testConverge(t, rand.New(rand.NewPCG(seed, i))) })
	}
}

func testConverge(t *testing.T, r *rand.Rand) {
	d := newDesk(t, func(o *workspace.Options) { o.KeepMessages, o.KeepResults = 12, 6 })
	clients := []*client{d.follow(0), d.follow(1), d.follow(1 + r.IntN(4))}
	// A run begins again whole seconds after a message, and a client comes back a tenth
	// of a second after it was cut off: what is compared is in between.
	quiet := func() { time.Sleep(2500 * time.Millisecond); synctest.Wait() }
	var log []string
	for i := range 1 + r.IntN(12) {
		id := fmt.Sprint("m", i)
		what := drawAction(r, id)
		log = append(log, what)
		verb, text, _ := strings.Cut(what, " ")
		switch verb {
		case "send":
			d.send(id, text)
		case "approve":
			d.decide(id, tool.Approve)
		case "refuse":
			d.decide(id, func(key string) tool.Decision { return tool.Refuse(key, "no") })
		case "stop":
			require.NoError(t, d.pages.Stop(t.Context(), thread, ""))
		case "retry":
			for _, turn := range d.read().Turns {
				if turn.State == page.TurnFailed {
					require.NoError(t, d.Retry(t.Context(), thread, turn.ID))
				}
			}
		case "discard":
			for _, turn := range d.read().Turns {
				if turn.State == page.TurnFailed || turn.State == page.TurnWaiting {
					if err := d.Discard(t.Context(), thread, turn.ID); !errors.Is(err, workspace.ErrNotFound) { // its run may have begun
						require.NoError(t, err)
					}
				}
			}
		case "share":
			require.NoError(t, d.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error { return city.Set(w.State(), id) }))
		case "edit":
			_ = d.Update(t.Context(), thread, func(w *workspace.Workspace) error { // not during a run
				said := state.Messages.GetOr(w.State(), nil)
				if len(said) > 2 {
					return state.Messages.Replace(w.State(), append(said[:1:1], said[2:]...))
				}
				return nil
			})
		case "delete":
			require.NoError(t, d.Delete(t.Context(), thread))
		}
		if r.IntN(2) == 0 {
			quiet()
			fresh := d.follow(0)
			for n, c := range clients {
				c.mu.Lock()
				require.NoError(t, c.err)
				want, got := unshared(fresh.Page), unshared(c.Page)
				// A page may be cut off before the answer that is being made comes, and one
				// that has just come does not have what is recorded and not committed.
				if n > 0 || len(got.Pending) > len(want.Pending) {
					want, got = stored(want), stored(got)
				}
				c.mu.Unlock()
				requireSame(t, want, got, "client ", n, " after ", strings.Join(log, "; "))
			}
		}
		select {
		case d.goOn <- struct{}{}:
		default:
		}
	}
	for {
		quiet()
		select {
		case d.goOn <- struct{}{}:
			continue
		default:
		}
		break
	}
	// What other threads do to the shared fields is told with the next change.
	d.handle("last", "title:last say:good-bye")
	quiet()
	for n, c := range clients {
		require.NoError(t, c.err)
		requireSame(t, *d.read(), c.Page, "client ", n, " after ", strings.Join(log, "; "))
	}
}

// stored returns a page without the answer that is being made.
func stored(p page.Page) page.Page {
	p.Pending = slices.DeleteFunc(slices.Clone(p.Pending), func(i *page.Item) bool { return i.Open })
	return p
}

// unshared returns a page without what other threads may have changed since it was
// told of a change.
func unshared(p page.Page) page.Page {
	p.Version, _, _ = strings.Cut(p.Version, ".")
	p.Fields = maps.Clone(p.Fields)
	delete(p.Fields, "city")
	return p
}

// drawAction returns a verb, and what a message says.
func drawAction(r *rand.Rand, id string) string {
	verbs := []string{"send", "send", "send", "send", "send", "approve", "refuse", "stop", "retry", "discard", "share", "edit", "delete"}
	verb := verbs[r.IntN(len(verbs))]
	if verb != "send" {
		return verb
	}
	words := []string{
		"think:hm", "text:Hel", "text:lö", `args:{"eu`, `args:ros":10}`, "say:Hello-" + id, "call:" + id, "ask:" + id, "result:" + id, "error:" + id,
		"title:" + id, "note:" + id, "city:" + id, "commit", "hold", "hold", "retry", "fail",
	}
	text := []string{"send"}
	for range 1 + r.IntN(8) {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// A page that comes back is told what was stored meanwhile, and the answer that is
// being made from its beginning. A version that is not held gives all of it.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *workspace.Options) { o.RecordBytes = 1 })
		d.handle("1", "title:one say:first")
		seen := d.read()
		d.handle("2", "title:two say:second")
		d.send("3", "think:hm text:Hel text:lo hold say:Hello")
		time.Sleep(time.Second)
		synctest.Wait()
		first := func(from string) page.Change {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			for c, err := range d.pages.Follow(ctx, thread, from) {
				require.NoError(t, err)
				return c
			}
			return page.Change{}
		}
		c := first(seen.Version)
		require.Nil(t, c.Page)
		require.Len(t, c.Items, 2)
		require.Equal(t, "first", seen.Items[1].Parts[0].Text)
		require.Equal(t, seen.Items[1].ID, c.Items[0].Behind)
		require.Equal(t, map[string]state.JSON{"title": `"two"`}, c.Fields)
		require.Len(t, c.Tail.Pending, 1, "the question; the answer follows")
		for _, from := range []string{"", "nonsense", "7-abc", "1-0123456789abcdef", "99999999-x"} {
			require.NotNil(t, first(from).Page, from)
		}
		late := d.follow(0)
		time.Sleep(time.Second)
		synctest.Wait()
		answer := late.Pending[len(late.Pending)-1]
		require.Equal(t, "3", answer.Turn)
		require.True(t, answer.Open)
		require.Equal(t, "hm", answer.Parts[0].Text)
		require.Equal(t, "Hello", answer.Parts[1].Text)
		close(d.goOn)
		time.Sleep(time.Second)
		synctest.Wait()
		stored := late.Items[len(late.Items)-1]
		require.Equal(t, answer.ID, stored.ID, "the answer keeps its id")
		require.Equal(t, answer.Parts[1].ID, stored.Parts[0].ID)
		require.Empty(t, late.Pending)
	})
}

// A request that is made again says that its answer begins anew.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		c := d.follow(0)
		d.send("1", "think:wrong text:wrong hold retry text:right hold say:right")
		time.Sleep(time.Second)
		synctest.Wait()
		wrong := c.Pending[1]
		require.Equal(t, "wrong", wrong.Parts[1].Text)
		d.goOn <- struct{}{}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		d.goOn <- struct{}{} // the second time
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "wrong", c.Pending[1].Parts[0].Text, "the second attempt says it again")
		restarts := 0
		for _, change := range c.changes {
			if change.Restart != "" {
				restarts++
				require.Equal(t, wrong.ID, change.Restart)
			}
		}
		require.LessOrEqual(t, restarts, 1)
		d.goOn <- struct{}{}
		time.Sleep(time.Second)
		synctest.Wait()
		requireSame(t, *d.read(), c.Page)
	})
}

// A page that does not read delays nobody, and has the whole in the end.
func TestSlowPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		var slow page.Page
		go func() {
			for c, err := range d.pages.Follow(t.Context(), thread, "") {
				if err != nil {
					return
				}
				slow.Apply(c)
				time.Sleep(time.Minute)
				synctest.Wait()
			}
		}()
		quick := d.follow(0)
		synctest.Wait()
		begun := time.Now()
		for i := range 200 {
			d.handle(fmt.Sprint(i), strings.Repeat("text:x ", 10)+fmt.Sprint("say:", i))
		}
		require.Less(t, time.Since(begun), time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		requireSame(t, *d.read(), quick.Page)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		requireSame(t, *d.read(), slow)
	})
}

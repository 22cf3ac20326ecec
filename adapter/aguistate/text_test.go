package aguistate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
)

func TestAPageTalks(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p := d.page(c, version, "ann", "1")
		s := p.say("say Hello there, Ann!")
		require.Empty(t, s.Error)
		p.mustBe(s)
		require.Equal(t, []string{"user say Hello there, Ann!", "assistant Hello there, Ann!"}, textsOf(s.Messages))
		require.Equal(t, 1, s.count("TEXT_MESSAGE_START"), s.types())
		s = p.say("call note:a note:b\nset title \"Notes\"\ncall note:c\nthink")
		require.Empty(t, s.Error)
		p.mustBe(s)
		require.Equal(t, []any{"a", "b", "c"}, s.State["notes"])
		require.Equal(t, 3, s.count("TOOL_CALL_RESULT"))
		require.Equal(t, 1, s.count("REASONING_MESSAGE_CONTENT"))
		require.Zero(t, s.count("MESSAGES_SNAPSHOT"), s.types())
		s = p.say("set scores {\"a/b\":1}\nset notes [\"d\"]\nset count 2\nsay " + secret)
		p.mustBe(s)
		p.open() // a page that was closed comes back
		p.mustBe(p.catchUp())
	})
}

func TestAPageFollows(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p, tab := d.page(c, version, "ann", "1"), d.page(c, 1-version, "ann", "1")
		tab.do("follow", nil)
		tab.await()
		for range 3 {
			s := p.say("call note:a\nsay one two three")
			p.mustBe(s)
			require.Empty(t, s.Error)
			tab.mustBe(tab.await())
		}
		require.NoError(t, d.m.Update(context.Background(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			return title.Set(w.State(), "new")
		}))
		s := tab.await()
		tab.mustBe(s)
		require.Equal(t, "new", s.State["title"])
		tab.do("stop", nil)
	})
}

func TestTwoTabsSpeakAtOnce(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		p, tab, late := d.page(c, version, "ann", "1"), d.page(c, version, "ann", "1"), d.page(c, version, "ann", "1")
		p.do("say", object{"messages": []object{{"id": "a", "role": "user", "content": "say one hold two"}}})
		p.do("follow", nil)
		require.Eventually(t, func() bool {
			v := d.view("ann", "1")
			return v.Run != nil && v.Run.Message.ID == "a"
		}, 10*time.Second, time.Millisecond)
		tab.do("say", object{"messages": []object{{"id": "b", "role": "user", "content": "say three"}}})
		tab.do("follow", nil)
		require.Eventually(t, func() bool { return len(d.view("ann", "1").Queue) == 1 }, 10*time.Second, time.Millisecond)
		late.do("follow", nil)
		require.Eventually(t, func() bool {
			return slices.Equal([]string{"user say one hold two", "assistant one ", "user say three"}, textsOf(late.do("show", nil).Messages))
		}, 10*time.Second, time.Millisecond)
		d.letGo()
		_, err := d.m.Await(t.Context(), workspace.Thread("ann", "1"), "b")
		require.NoError(t, err)
		tab.mustBe(tab.await())
		for _, p := range []*page{p, tab, late} {
			p.do("stop", nil)
			p.mustBe(p.catchUp())
		}
	})
}

// A page that goes away ends nothing, and what it sends again is handled once.
func TestAPageGoesAway(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	p := d.page(c, 1, "ann", "1")
	p.do("say", object{"messages": []object{{"id": "a", "role": "user", "content": "call note:a\nsay hold on"}}})
	p.run(object{"until": "TOOL_CALL_RESULT"})
	d.letGo()
	_, err := d.m.Await(t.Context(), workspace.Thread("ann", "1"), "a")
	require.NoError(t, err)
	for range 3 {
		p.mustBe(p.catchUp())
	}
	v := d.view("ann", "1")
	require.Equal(t, []string{"a"}, notes.GetOr(v.State(), nil))
	require.Len(t, saidIn(v), 4)
}

const script = "set title \"Käse ~/\"\ncall note:a note:b\nset count 2\ncall note:fail\nset scores {\"a/b\":1,\"~\":2}\nthink"

// A stream may break off at any byte, and the page comes back. In CI, and in a
// short test, that is each of some bytes.
func TestStreamsBreakOffAnywhere(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		whole := d.page(c, version, "ann", "whole").say(script)
		data, err := json.Marshal(whole.Events)
		require.NoError(t, err)
		step := max(1, 4000/effort.Runs(100))
		for cut := rand.IntN(step); cut < len(data)+500; cut += step {
			p := d.page(c, version, "ann", fmt.Sprint("cut", cut))
			p.do("say", object{"messages": []object{{"id": "m", "role": "user", "content": script}}})
			p.run(object{"cut": cut})
			s := p.catchUp()
			p.mustBe(s, cut)
			s = p.say("say and on")
			text, _ := s.lastError()
			require.Empty(t, text, cut)
			p.mustBe(s, cut)
		}
	})
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Each page shows in the end what the workspace has, whatever is said in two of
// them, and wherever their streams break off.
func TestRandomPages(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	random := rand.New(rand.NewPCG(effort.LogSeed(t), 1))
	lines := []string{
		"call note:a", "call note:b note:c", "call note:fail", "set title \"x\"", "set count 1", "set scores {\"k\":1}",
		"set notes [\"p\",\"q\"]", "think", "say one two three", "fail", "say " + secret,
	}
	for i := range effort.Runs(20) {
		thread := fmt.Sprint("t", i)
		tabs := []*page{d.page(c, i%2, "ann", thread), d.page(c, 1-i%2, "ann", thread)}
		watcher := d.page(c, i%2, "ann", thread)
		require.NoError(t, d.m.Update(t.Context(), workspace.Thread("ann", thread), func(w *workspace.Workspace) error {
			return card.Set(w.State(), secret)
		}))
		watcher.do("follow", nil)
		for range 6 {
			p := tabs[random.IntN(2)]
			steps := make([]string, 1+random.IntN(4))
			for j := range steps {
				steps[j] = lines[random.IntN(len(lines))]
			}
			p.said++
			p.do("say", object{"messages": []object{{"id": fmt.Sprint(p.id, "-", p.said), "role": "user", "content": strings.Join(steps, "\n")}}})
			with := object{}
			if random.IntN(2) == 0 {
				with["cut"] = random.IntN(6000)
			}
			if s := p.run(with); with["cut"] == nil {
				require.Empty(t, s.Warnings, "%s: %v", steps, s.types())
			}
		}
		for _, p := range tabs {
			p.mustBe(p.catchUp(), thread)
		}
		shown := uuid.ReplaceAllString(fmt.Sprint(watcher.do("stop", nil)), "") // the client makes ids of runs
		require.NotContains(t, shown, secret[:4])
	}
}

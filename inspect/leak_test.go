package inspect_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// leaks is a random workspace with secrets in every place that holds text.
type leaks struct {
	*rand.Rand
	secrets []string
	manager *workspace.Manager
	db      *store.Memory
	works   chan error // tells that the run is under way which wait leaves
}

func newLeaks(t testing.TB, seed uint64) *leaks {
	t.Helper()
	l := &leaks{Rand: rand.New(rand.NewPCG(seed, 0)), db: store.NewMemory(), works: make(chan error, 1)}
	for range 4 {
		l.secrets = append(l.secrets, l.secret())
	}
	m, err := workspace.Open(context.Background(), l.db, &workspace.Options{
		Schema: desk, Run: l.answer, Title: func(st *state.State) string { return orderID.GetOr(st, "") },
	})
	require.NoError(t, err)
	l.manager = m
	// In the end all secrets are known, and the pages mask them in every version.
	steps := []func() error{l.send, l.send, l.update, l.update, l.update, l.fail, l.hideAll, l.wait}
	l.Shuffle(len(steps)-2, func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for i, step := range steps {
		require.NoError(t, step(), "step %d", i)
	}
	return l
}

// secret returns a text of 24 characters or more. Its halves are random enough
// to be found by themselves.
func (l *leaks) secret() string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
	var b strings.Builder
	special := []string{"", "-", "<", `"`, "&", "'", " ", "ß", "\n", "\u202e", "%", `\`}[l.IntN(12)]
	for i := range 24 {
		b.WriteByte(letters[l.IntN(len(letters))])
		if i%6 == 5 && i < 23 {
			b.WriteString(special)
		}
	}
	return b.String()
}

// text returns a text that has one of the secrets, as it is or encoded, often
// across the place where a page would clip it.
func (l *leaks) text() string {
	s := l.secrets[l.IntN(len(l.secrets))]
	switch l.IntN(8) {
	case 0:
		s = base64.StdEncoding.EncodeToString([]byte(s))
	case 1:
		s = hex.EncodeToString([]byte(s))
	case 2:
		s = url.QueryEscape(s)
	case 3:
		s = html.EscapeString(s)
	case 4:
		quoted, _ := json.Marshal(s)
		s = string(quoted)
	}
	before := 0
	switch l.IntN(4) {
	case 0:
		before = 1024 - l.IntN(40)
	case 1:
		before = 64<<10 - l.IntN(60)
		if l.IntN(4) > 0 {
			before = 256 - l.IntN(30)
		}
	case 2:
		before = l.IntN(2000)
	}
	return strings.Repeat("x ", before/2) + s + " after"
}

// short returns a text with a secret for an id or a cause.
func (l *leaks) short() string {
	s := l.secrets[l.IntN(len(l.secrets))]
	if strings.ContainsAny(s, "\n\u202e") {
		return "an id"
	}
	return "id " + s
}

func (l *leaks) message() workspace.Message {
	return workspace.Message{
		ID: fmt.Sprintf("%s %d", l.short(), l.Uint64()), ChatID: l.short(), Platform: l.short(), Content: state.UserText(l.text()),
	}
}

func (l *leaks) send() error {
	_, err := l.manager.Handle(context.Background(), "ann", l.message())
	return err
}

var errLeaks = errors.New("failed")

func (l *leaks) fail() error {
	m := l.message()
	m.ID = fmt.Sprintf("fails %d %s", l.Uint64(), l.short())
	if _, err := l.manager.Handle(context.Background(), "ann", m); !errors.Is(err, errLeaks) {
		return fmt.Errorf("the run has not failed: %w", err)
	}
	return nil
}

// wait leaves a run, a suspended call and a message that waits.
func (l *leaks) wait() error {
	m := l.message()
	m.ID = fmt.Sprintf("works %d %s", l.Uint64(), l.short())
	_, err := l.manager.Submit(context.Background(), "ann", m)
	if err == nil {
		err = <-l.works
	}
	if err == nil {
		_, err = l.manager.Submit(context.Background(), "ann", l.message())
	}
	return err
}

func (l *leaks) answer(ctx context.Context, run *workspace.Run) error {
	if strings.HasPrefix(run.Message().ID, "fails") {
		// Package workspace clips the reason when it stores it. A secret that it
		// does not know then must be whole in it.
		return fmt.Errorf("%w: %s", errLeaks, l.short())
	}
	if strings.HasPrefix(run.Message().ID, "works") {
		call := state.ToolCall{ID: fmt.Sprintf("%s %d", l.short(), l.Uint64()), Name: "pay " + l.short(), Input: l.json()}
		history := run.State().History()
		err := history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}})
		open := history.Pending()
		l.works <- errors.Join(err, run.Suspend(open[len(open)-1].Key), run.Commit(ctx))
		<-ctx.Done()
		return ctx.Err()
	}
	st := run.State().As("support").WithCause(l.short())
	call := state.ToolCall{ID: fmt.Sprintf("%s %d", l.short(), l.Uint64()), Name: "find " + l.short(), Input: l.json()}
	run.SetReply(l.text())
	var hidden error
	if l.IntN(4) == 0 {
		hidden = l.hide(run.State(), run.Memory())
	}
	return errors.Join(
		orderID.Set(st, l.text()), hidden,
		st.History().Append(state.InferenceResult{
			Agent: "support", Input: l.text(), Raw: l.text(),
			Prompt:  []state.Message{state.SystemText(l.text())},
			History: []state.Message{state.UserText(l.text())},
			Output:  []state.Message{state.AssistantText(l.text()), state.ToolCalls(call)},
		}),
		st.History().Answer(state.ToolResult(call, l.json())),
	)
}

func (l *leaks) json() state.JSON {
	data, _ := json.Marshal(map[string]any{"a": l.text(), l.short(): []string{l.text(), "b"}})
	return state.JSON(data)
}

// hide makes the secrets secret: from then on they are known.
func (l *leaks) hide(st *state.State, memory *workspace.Memory) error {
	return errors.Join(
		card.Replace(st, l.secrets[0]),
		memory.SetSecret("token", l.secrets[1]), memory.SetSecret("password", l.secrets[2]),
		codes.Replace(st, map[string]any{"pin": []any{l.secrets[3]}}),
	)
}

func (l *leaks) update() error {
	return l.manager.Update(context.Background(), "ann", func(w *workspace.Workspace) error {
		st := w.State()
		err := errors.Join(
			notes.Set(st.As("search").WithCause(l.short()), []string{l.text(), l.text(), "line"}),
			plan.Set(st.As("billing"), map[string]any{"text": l.text(), l.short(): l.text()}),
			orderID.Set(st.WithCause(l.text()), strings.Repeat(l.text()+"\n", 2)),
			w.Memory().Set(l.short(), "a key"), w.Memory().Set("note", strings.Repeat("y", 1020)+l.short()),
			w.SetSettings(func(s *workspace.Settings) {
				s.MCPServers = map[string]state.JSON{"mail": state.JSON(`{"key":` + string(state.JSONText(l.secrets[1])) + `,"other":"` + serverKey + `"}`)}
				s.ChatID = l.short()
			}),
		)
		if l.IntN(4) == 0 {
			err = errors.Join(err, l.hide(st, w.Memory()))
		}
		return err
	})
}

func (l *leaks) hideAll() error {
	return l.manager.Update(context.Background(), "ann", func(w *workspace.Workspace) error { return l.hide(w.State(), w.Memory()) })
}

// serverKey is in the configuration of a server, which no page shows.
const serverKey = "key-of-a-server-4711"

// targets returns pages about the workspace.
func (l *leaks) targets(t testing.TB, all bool) []string {
	t.Helper()
	s, err := l.manager.Summary(context.Background(), "ann")
	require.NoError(t, err)
	var list []string
	for _, page := range []string{"", "/state", "/conversation", "/results", "/result", "/history", "/diff", "/export"} {
		list = append(list, fmt.Sprintf("/workspace%s?user=ann&n=%d", page, l.IntN(2)))
		list = append(list, fmt.Sprintf("/workspace%s?user=ann&n=0&at=%d", page, s.Oldest+l.Uint64N((s.Version-s.Oldest)/2+1)))
	}
	for _, field := range []string{"notes", "order_id", "plan", "card", "codes"} {
		list = append(list, "/workspace/state?user=ann&open="+field)
	}
	for _, agent := range []string{"support", "search", "nobody"} {
		list = append(list, "/workspace/state?user=ann&as="+agent)
	}
	for range 4 {
		from, to := s.Oldest+l.Uint64N(s.Version-s.Oldest+1), s.Oldest+l.Uint64N(s.Version-s.Oldest+1)
		list = append(list, fmt.Sprintf("/workspace/diff?user=ann&from=%d&to=%d", from, to))
	}
	for r, err := range l.manager.Records(context.Background(), "ann", s.Oldest) {
		require.NoError(t, err)
		if r.RunID != "" {
			list = append(list, "/workspace/history?user=ann&run="+r.RunID)
		}
	}
	for _, field := range []string{"field=notes", "field=order_id", "message=0", "result=0"} {
		list = append(list, "/workspace/export?user=ann&"+field)
	}
	list = append(list, "/", "/users", "/schema", "/workspace?verify=1&user=ann")
	for i := range list {
		if l.IntN(3) == 0 && !strings.Contains(list[i], "format=") {
			list[i] = with(t, list[i], "format", "json")
		}
	}
	if !all {
		l.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:16]
	}
	return list
}

// requireNoLeak checks that a body has no secret in any form.
func (l *leaks) requireNoLeak(t testing.TB, target, body string) {
	t.Helper()
	require.NotContains(t, body, serverKey, target)
	forms := []string{body, html.UnescapeString(body), html.UnescapeString(html.UnescapeString(body))}
	for _, s := range l.secrets {
		half := len(s) / 2
		for !strings.ContainsAny(s[half:half+1], "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789") {
			half++
		}
		quoted, err := json.Marshal(s)
		require.NoError(t, err)
		for _, secret := range []string{
			s, s[:half], s[half:], strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%q", s), `"`),
			url.QueryEscape(s), url.PathEscape(s), hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte(s)),
			base64.RawURLEncoding.EncodeToString([]byte(s)), html.EscapeString(s),
		} {
			for _, form := range forms {
				if i := strings.Index(form, secret); i >= 0 {
					t.Fatalf("%s shows %q of %q: …%s…", target, secret, s, form[max(0, i-200):min(len(form), i+200)])
				}
			}
		}
	}
}

// TestNoPageShowsASecret asks for some pages of many random workspaces.
func TestNoPageShowsASecret(t *testing.T) {
	seed := effort.LogSeed(t)
	programs := 40
	if testing.Short() {
		programs = 10
	}
	for i := range uint64(effort.Runs(programs)) {
		l := newLeaks(t, seed+i)
		schema := desk
		if i%4 == 3 {
			schema = nil
		}
		m, err := workspace.Open(context.Background(), l.db, &workspace.Options{Schema: schema})
		require.NoError(t, err)
		h, err := inspect.New(m, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true})})
		require.NoError(t, err)
		for _, target := range l.targets(t, i < 4) {
			p := get(t, h, target)
			if schema != nil || p.code != http.StatusInternalServerError {
				require.Less(t, p.code, 500, "seed %d: %s: %s", seed+i, target, p.body)
			}
			l.requireNoLeak(t, fmt.Sprintf("seed %d: %s", seed+i, target), p.body)
			for name, values := range p.header {
				l.requireNoLeak(t, target+" "+name, strings.Join(values, " "))
			}
		}
		require.NoError(t, m.Close())
		_ = l.manager.Close()
	}
}

// TestNoLinkLeadsToASecret follows every link of a random workspace.
func TestNoLinkLeadsToASecret(t *testing.T) {
	seed := effort.LogSeed(t)
	l := newLeaks(t, seed)
	t.Cleanup(func() { _ = l.manager.Close() })
	for _, access := range []inspect.Access{{Read: true}, {Read: true, Write: true, Delete: true, Actor: "op"}} {
		h := newHandler(t, l.manager, &inspect.Options{Authorize: inspect.Trusted(access)})
		for _, p := range crawl(t, h, effort.Runs(300), "/", "/workspace/history?user=ann") {
			l.requireNoLeak(t, p.target, p.body)
			l.requireNoLeak(t, "the address", p.target)
		}
	}
}

// A program without a schema does not know what is secret: it shows no value, also
// none that nobody has marked as secret.
func TestNoPageShowsAValueWithoutASchema(t *testing.T) {
	f := newFixture(t, 0)
	for target, value := range map[string]string{
		"/workspace/conversation?user=alice": "Where is my order?",
		"/workspace/state?user=alice":        "refunds within 30 days",
		"/workspace?user=carol":              errRefused.Error(),
	} {
		require.Contains(t, get(t, f.handler(t, nil), target).body, value, target)
		p := get(t, newHandler(t, f.open(t, nil), nil), target)
		require.Equal(t, http.StatusOK, p.code)
		require.NotContains(t, p.body, value, target)
	}
}

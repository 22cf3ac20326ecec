package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the desk, so that nothing else has to be built.
func TestMain(m *testing.M) {
	if os.Getenv("DESK") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// terminal is a process of the desk.
type terminal struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, args ...string) *terminal {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "DESK=1", "GORACE=atexit_sleep_ms=0") // else each end takes a second
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &terminal{t, cmd, in, bufio.NewReader(out)}
}

func (p *terminal) says(line string) {
	_, err := fmt.Fprintln(p.in, line)
	require.NoError(p.t, err)
}

// next returns the next line of the output.
func (p *terminal) next() string {
	line, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	return strings.TrimSuffix(line, "\n")
}

func (p *terminal) reads(want string) { require.Equal(p.t, want, p.next()) }

// rest ends the input and returns the lines until the process has ended.
func (p *terminal) rest() []string {
	require.NoError(p.t, p.in.Close())
	out, err := io.ReadAll(p.out)
	require.NoError(p.t, err)
	require.NoError(p.t, p.cmd.Wait())
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

func TestGoesOnAfterAKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.db")
	p := start(t, "-db", file, "-ttl", "1s", "-slow", "1h", "-session", "monday")
	lines := []string{
		"bob: remember my token is tok-4711-abc", "bob: what is my token?",
		"alice: where is my order #W1?", "alice: refund it", "alice: and #W2?",
	}
	for i, answer := range []string{
		"bob: remembered", "bob: [SECRET]",
		`alice: {"order":"#W1"}`, "shop: refunds #W1", "alice: [queued]",
	} {
		p.says(lines[i])
		p.reads(answer)
	}
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait())

	p = start(t, "-db", file, "-ttl", "1s", "-slow", "0")
	require.Equal(t, []string{
		"alice: [continues after a crash]",
		"shop: has refunded #W1",
		`alice: {"order":"#W1","refunded":30}`,
		`alice: {"order":"#W2"}`,
	}, p.rest())

	// A user who does not know what has arrived sends it again.
	p = start(t, "-db", file, "-session", "monday")
	for _, line := range lines {
		p.says(line)
	}
	require.ElementsMatch(t, []string{
		"bob: [duplicate]", "bob: [duplicate]", "alice: [duplicate]", "alice: [duplicate]", "alice: [duplicate]",
	}, p.rest())

	v := view(t, file, "alice")
	history, err := state.Messages.Get(v.State())
	require.NoError(t, err)
	for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic, transcript.Gemini} {
		require.Empty(t, transcript.Check(history, profile))
	}
	require.Equal(t, []string{"where is my order #W1?", "refund it", "and #W2?"}, requests(history))
	require.Equal(t, 30.0, Refunded.GetOr(v.State(), 0))
	require.Nil(t, v.Run)
	require.Empty(t, v.Queue)
	require.Empty(t, v.DeadLetters)
	require.Len(t, requests(state.Messages.GetOr(view(t, file, "bob").State(), nil)), 2)
}

func TestInterruptAndReset(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.db")
	p := start(t, "-db", file, "-ttl", "1s", "-slow", "1h")
	refund := func(order string) {
		p.says("alice: where is my order " + order + "?")
		p.reads(`alice: {"order":"` + order + `"}`)
		p.says("alice: refund it")
		p.reads("shop: refunds " + order)
	}
	refund("#W1")
	p.says("!alice: stop, cancel it")
	answer := []string{p.next(), p.next()}
	require.ElementsMatch(t, []string{"alice: [interrupted]", "alice: I look up orders, refund them, and remember things."}, answer)

	v := view(t, file, "alice")
	history := state.Messages.GetOr(v.State(), nil)
	require.Empty(t, transcript.Check(history, transcript.OpenAI))
	require.Equal(t, []string{"where is my order #W1?", "refund it", "stop, cancel it"}, requests(history))
	require.False(t, Refunded.Has(v.State()), "nobody has heard of the refund")

	p.says("alice: remember my token is tok-4711-abc")
	p.reads("alice: remembered")
	refund("#W2")
	p.says("alice: my token is tok-4711-abc")
	p.reads("alice: [queued]")
	p.says("/memory alice")
	p.reads("alice: [remembers token: [SECRET]]")
	p.says("/queue alice")
	p.reads("alice: [running: refund it]")
	p.reads("alice: [waiting: my token is [SECRET]]")
	p.says("/reset alice")
	require.ElementsMatch(t, []string{"alice: [dropped messages: 2]", "alice: [interrupted]"}, p.rest())
	v = view(t, file, "alice")
	require.False(t, state.Messages.Has(v.State()))
	require.Empty(t, v.Memory().List())
}

// lossyStore loses the answer to the first write of a refund: the write is made,
// and the caller cannot know.
type lossyStore struct {
	store.Store
	lost bool
}

func (s *lossyStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	revisions, err := s.Store.Batch(ctx, writes)
	if strings.HasPrefix(writes[0].Key, "shop:") && !s.lost {
		s.lost = true
		return nil, store.ErrUnknownOutcome
	}
	return revisions, err
}

func TestLostAnswerOfARefund(t *testing.T) {
	db := &lossyStore{Store: store.NewMemory()}
	s := &shop{store.NewManager(db, "shop:"), 0}
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema, Run: s.answer})
	require.NoError(t, err)
	defer m.Close()
	for _, line := range []string{"where is my order #W1?", "refund it"} {
		out, err := m.Handle(t.Context(), "alice", workspace.Message{ID: line, Content: state.UserText(line)})
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
	}
	require.True(t, db.lost)
	v, err := m.View(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, 30.0, Refunded.GetOr(v.State(), 0))
	history := state.Messages.GetOr(v.State(), nil)
	require.Equal(t, `{"order":"#W1","refunded":30}`, text(history[len(history)-1]))
}

func view(t *testing.T, file, user string) *workspace.View {
	db, err := sqlitestore.Open(t.Context(), file, nil)
	require.NoError(t, err)
	defer db.Close()
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema})
	require.NoError(t, err)
	defer m.Close()
	v, err := m.View(t.Context(), user)
	require.NoError(t, err)
	return v
}

func requests(history []state.Message) []string {
	var texts []string
	for _, m := range history {
		if m.Role() == "user" {
			texts = append(texts, text(m))
		}
	}
	return texts
}

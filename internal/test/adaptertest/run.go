package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// An Adapter is what the test of an adapter gives to [Run] and [Killed].
type Adapter struct {
	// Open opens a durable store in a file.
	Open func(ctx context.Context, file string) (store.Store, error)
	// User names the workspace (default [UserID]), and Fields are fields of the
	// adapter, next to those of the scenario.
	User   string
	Fields []state.Part
	// Answer answers the message of a run with a framework. It is Options.Run.
	Answer func(ctx context.Context, run *workspace.Run, d *Desk) error
	// RefundKey is the idempotency key of a refund in a run, for a framework whose
	// calls are not committed before they are made (default: the key of its call).
	RefundKey func(run *workspace.Run) string
	// Derives says that the functions of tools see keys which a server derives from
	// those of the calls.
	Derives bool
}

func (a Adapter) user() string {
	if a.User != "" {
		return a.User
	}
	return UserID
}

// A scenario is what the customer sends, and what the workspace then has to have.
type scenario struct {
	messages []workspace.Message
	// decide adds what a person says about the calls that wait to a message
	// without Content.
	decide func(msg *workspace.Message, waiting []workspace.Suspended)
	check  func(t testing.TB, view *workspace.View)
	nested bool // of a team
}

// desk is the scenario of [Run] and [Killed].
var desk = scenario{messages: messages, decide: approve, check: check}

func approve(msg *workspace.Message, waiting []workspace.Suspended) {
	for _, call := range waiting {
		msg.Decisions = append(msg.Decisions, tool.AnswerWith(call.Key, `{"approved":true}`))
	}
}

func (a Adapter) schema() *state.Schema {
	return state.MustSchema(slices.Concat(parts, a.Fields)...)
}

// Run plays the scenario undisturbed and checks the outcome. Each function of a
// tool is called once for each call.
func Run(t *testing.T, a Adapter) {
	file := filepath.Join(t.TempDir(), "desk.db")
	d, err := a.play(t.Context(), file, 0, desk)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"approve": 1, "refund": 1}
	for _, topic := range topics {
		want["look_up "+topic] = 1
	}
	if !maps.Equal(want, d.calls) {
		t.Errorf("adaptertest: calls of functions: %v, want %v", d.calls, want)
	}
	a.check(t, file, desk)
}

// variable has the file and the point of death of a process of [Killed].
const variable = "STATE_ADAPTERTEST"

// Killed plays the scenario in a process that kills itself at point k, lets
// another process go on, and checks the outcome: for each k, with -short for each
// fourth. The points are before each call of the model and of a function of a
// tool, after the effect of a refund, and after each run. The processes are the
// binary of the test, which runs t again: a test should begin with Killed.
func Killed(t *testing.T, a Adapter) { a.killed(t, desk) }

func (a Adapter) killed(t *testing.T, s scenario) {
	if task := os.Getenv(variable); task != "" {
		var k int
		file, point, _ := strings.Cut(task, "|")
		_, err := fmt.Sscan(point, &k)
		if err == nil {
			_, err = a.play(t.Context(), file, k, s)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	stride, k := 1, 1
	if testing.Short() {
		stride = 4
	}
	for ; ; k += stride {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("killed at %d.db", k))
		if !died(t, file, k) {
			break
		}
		if died(t, file, 0) {
			t.Fatalf("adaptertest: the process after the one killed at %d was killed", k)
		}
		a.check(t, file, s)
		if t.Failed() {
			t.Fatalf("adaptertest: killed at point %d", k)
		}
	}
	if k < 15 {
		t.Errorf("adaptertest: the scenario has fewer than %d points", k)
	}
}

// died starts a process that plays the scenario, and reports whether it was
// killed.
func died(t *testing.T, file string, killAt int) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	process := exec.CommandContext(t.Context(), self, "-test.run="+pattern)
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", variable, file, killAt), "GORACE=atexit_sleep_ms=0")
	out, err := process.CombinedOutput()
	if err != nil && process.ProcessState.ExitCode() != -1 {
		t.Fatalf("adaptertest: the process that is killed at %d has failed: %v\n%s", killAt, err, out)
	}
	return err != nil
}

// messages are what the customer sends. The last one has the answer of a person.
var messages = []workspace.Message{
	{ID: "1", Content: state.UserText("Where is my order?")},
	{ID: "2", Content: state.UserText("Can I send it back?")},
	{ID: "3", Content: state.UserText("Refund it.")},
	{ID: "4"},
}

// topics are what is looked up, in the order of the notes.
var topics = []string{"delivery", "returns", "stock", "policy"}

// play goes on with the scenario to its end, or until the process is killed.
func (a Adapter) play(ctx context.Context, file string, killAt int, s scenario) (d *Desk, err error) {
	db, err := a.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	d = &Desk{
		outside: store.NewManager(db, "outside:"), killAt: killAt, refundKey: a.RefundKey, calls: map[string]int{},
		nested: s.nested,
	}
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Schema: a.schema(),
		Name:   "desk", // what a killed process has left need not wait
		Run:    func(ctx context.Context, run *workspace.Run) error { return a.Answer(ctx, run, d) },
		Hooks:  workspace.Hooks{OnRunComplete: func(context.Context, *workspace.Run, error) { d.point() }},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	d.Manager = m
	if err := workspacetest.Settle(ctx, m); err != nil {
		return nil, err
	}
	for _, msg := range s.messages {
		if err := send(ctx, m, a.user(), msg, s.decide); err != nil {
			return nil, fmt.Errorf("message %s: %w", msg.ID, err)
		}
	}
	return d, nil
}

// send sends a message that was not sent before.
func send(
	ctx context.Context, m *workspace.Manager, user string, msg workspace.Message,
	decide func(*workspace.Message, []workspace.Suspended),
) error {
	view, err := m.View(ctx, user)
	if err != nil {
		return err
	}
	if !User.Has(view.State()) {
		err := m.Update(ctx, user, func(w *workspace.Workspace) error {
			return errors.Join(User.Set(w.State(), UserID), Card.Set(w.State(), card))
		})
		if err != nil {
			return err
		}
	}
	if _, err := m.Await(ctx, user, msg.ID); !errors.Is(err, workspace.ErrNotFound) {
		return err
	}
	if msg.Content == nil {
		decide(&msg, view.Suspended())
	}
	_, err = m.Handle(ctx, user, msg)
	return err
}

// check checks the outcome that the store in a file has.
func (a Adapter) check(t *testing.T, file string, s scenario) {
	t.Helper()
	db, err := a.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: a.schema()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	view, err := m.View(t.Context(), a.user())
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, view)
	keys, _, err := store.NewManager(db, "outside:").Get(t.Context(), "refunds")
	if err != nil {
		t.Fatal(err)
	}
	refunds := strings.Fields(keys)
	called := callsOf(view, "refund")
	stranger := func(key string) bool { return a.RefundKey == nil && !a.Derives && !slices.Contains(called, key) }
	if len(refunds) == 0 || len(refunds) > 1 && !s.nested || slices.ContainsFunc(refunds, stranger) {
		t.Errorf("adaptertest: refunds %q of the calls %q", refunds, called)
	}
}

// callsOf returns the keys of the calls of a tool.
func callsOf(view *workspace.View, name string) (keys []string) {
	for m := range view.Messages(0, -1) {
		if m, ok := m.Message.(state.ToolCallMessage); ok {
			for _, c := range m.Calls() {
				if c.Name == name {
					keys = append(keys, c.Key)
				}
			}
		}
	}
	return keys
}

// check checks the workspace at the end of the scenario: fields, conversation,
// and that nothing is left to do.
func check(t testing.TB, view *workspace.View) {
	t.Helper()
	st := view.State()
	var want []string
	for _, topic := range topics {
		want = append(want, UserID+": "+topic)
	}
	if notes := Notes.GetOr(st, nil); !slices.Equal(want, notes) {
		t.Errorf("adaptertest: notes %q, want %q", notes, want)
	}
	if refunded := Refunded.GetOr(st, 0); refunded != 30 {
		t.Errorf("adaptertest: refunded %v, want 30", refunded)
	}
	checkEnded(t, view)
	checkValid(t, view)
	checkConversation(t, state.Messages.GetOr(st, nil))
}

func checkEnded(t testing.TB, view *workspace.View) {
	t.Helper()
	if view.Run != nil || len(view.Queue)+len(view.DeadLetters)+len(view.Suspended()) > 0 {
		t.Errorf("adaptertest: something is left to do: the run %v, %d messages, dead letters %+v, calls %+v", view.Run,
			len(view.Queue), view.DeadLetters, view.Suspended())
	}
}

func checkValid(t testing.TB, view *workspace.View) {
	t.Helper()
	for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic, transcript.Gemini} {
		for _, finding := range transcript.Check(state.Messages.GetOr(view.State(), nil), profile) {
			t.Errorf("adaptertest: %v refuses the conversation: %v", profile, finding)
		}
	}
}

func checkConversation(t testing.TB, msgs []state.Message) {
	t.Helper()
	var asked, want []string
	refused := map[string]bool{}
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			if m.Role() == "user" {
				asked = append(asked, m.Text())
			}
		case state.ToolResultMessage:
			if m.IsError() {
				refused[m.Call().Name] = true
			} else if m.Call().Name == "check_card" {
				t.Error("adaptertest: search has used the card")
			}
		}
	}
	for _, msg := range messages[:3] {
		want = append(want, msg.Content.(state.TextMessage).Text())
	}
	if !slices.Equal(want, asked) {
		t.Errorf("adaptertest: the user said %q, want %q", asked, want)
	}
	if !refused["check_card"] || !refused["look_up"] {
		t.Error("adaptertest: the conversation does not say that bad calls were refused")
	}
	if text, ok := msgs[max(0, len(msgs)-1)].(state.TextMessage); !ok || text.Text() != finalText {
		t.Errorf("adaptertest: the conversation does not end with %q", finalText)
	}
}

// Rounds calls round n times and returns how often it did not return want.
func Rounds[T any](n int, want T, round func() T) (lost int) {
	for range n {
		if !reflect.DeepEqual(want, round()) {
			lost++
		}
	}
	return lost
}

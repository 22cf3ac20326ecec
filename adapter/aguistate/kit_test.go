package aguistate_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	pages "github.com/agentstate/state/workspace/page"
)

const secret = "4242-\"4242\""

var (
	notes   = &state.Field[[]string]{Name: "notes", Owner: "desk", Read: state.Public, Write: state.Public}
	title   = &state.Field[string]{Name: "title", Owner: "desk", Read: state.Public, Write: state.Public}
	scores  = &state.Field[map[string]int]{Name: "scores", Owner: "desk", Read: state.Public, Handler: state.MergeMap[map[string]int]()}
	count   = &state.Field[int]{Name: "count", Owner: "desk", Read: state.Public, Write: state.Public, Handler: state.Sum[int]()}
	private = &state.Field[string]{Name: "private", Owner: "desk"}
	card    = &state.Field[string]{Name: "card", Owner: "desk", Read: state.Public, Secret: true}
	plan    = &state.Field[string]{Name: "plan", Owner: "desk", Read: state.Public, Write: state.Public, Shared: true}
	schema  = state.MustSchema(notes, title, scores, count, private, card, plan, state.Team{"desk": {"ui"}})
)

// desk is a server of pages, with a model that follows a script: each line of what
// the user says is a step.
type desk struct {
	t    testing.TB
	db   store.Store
	m    *workspace.Manager
	srv  *httptest.Server
	opts aguistate.Options
	who  statehttp.Who // of each request, but for its user

	failed atomic.Int32 // runs

	mu   sync.Mutex
	held chan struct{} // closed to let the model go on after the word "hold"
}

func newDesk(t testing.TB, db store.Store) *desk {
	d := &desk{t: t, db: cmp.Or[store.Store](db, store.NewMemory()), held: make(chan struct{})}
	d.who.Agent = "ui"
	d.opts = aguistate.Options{Who: func(r *http.Request, thread string) (statehttp.Who, error) {
		who := d.who
		switch who.User = r.Header.Get("User"); {
		case who.User == "":
			return who, errors.New("who are you?")
		case who.User == "eve", thread == "hidden":
			return who, statehttp.ErrForbidden
		}
		return who, nil
	}}
	d.open()
	return d
}

// open opens the Manager and the server, again if they were closed.
func (d *desk) open() {
	m, err := workspace.Open(context.Background(), d.db, &workspace.Options{
		Schema: schema, Live: true, KeepMessages: -1, Name: "desk",
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: d.ask, Tools: d.tools()}}}),
	})
	require.NoError(d.t, err)
	h, err := aguistate.New(m, &d.opts)
	require.NoError(d.t, err)
	srv := httptest.NewServer(h)
	d.m, d.srv = m, srv
	d.t.Cleanup(func() { d.close(m, srv) })
}

// reopen stops the server and starts it again.
func (d *desk) reopen() {
	d.close(d.m, d.srv)
	d.open()
}

// kill starts the server again, while that before has not ended: it can store
// nothing any more, and its streams break off.
func (d *desk) kill() {
	d.srv.CloseClientConnections()
	d.open()
}

func (d *desk) close(m *workspace.Manager, srv *httptest.Server) {
	if err := m.Close(); !errors.Is(err, workspace.ErrBusy) { // it may cut runs off
		require.NoError(d.t, err)
	}
	srv.CloseClientConnections()
	srv.Close()
}

func (d *desk) tools() []*tool.Tool {
	type in struct {
		Text string `json:"text"`
	}
	note := tool.Must(tool.New("note", "Notes a text.", func(_ context.Context, in in) ([]string, error) {
		if in.Text == "fail" {
			return nil, errors.New("no paper with " + secret)
		}
		return []string{in.Text}, nil
	}, tool.To(notes, "")))
	pay := tool.Must(tool.New("pay", "Pays.", func(_ context.Context, in in) (map[string]int, error) {
		return map[string]int{in.Text: 1}, nil
	}, tool.To(scores, ""), tool.NeedsApproval(func(_ context.Context, in in) (string, bool) { return in.Text + " is much", true })))
	question := tool.Must(tool.New("question", "Asks a person.", func(context.Context, in) (any, error) {
		return nil, tool.Suspend(errors.New("which one?"))
	}))
	rush := tool.Must(tool.New("rush", "Pays at once.", func(context.Context, in) (any, error) {
		return nil, errors.New("was made")
	}, tool.NeedsApproval(func(context.Context, in) (string, bool) { return "soon", true }), tool.Expires(time.Second)))
	return []*tool.Tool{note, pay, question, rush}
}

// ask does the next step of the script. The steps that were done are those that the
// model has answered since the user has spoken.
func (d *desk) ask(ctx context.Context, t *loop.Turn) error {
	run, _ := workspace.FromContext(ctx)
	msgs := state.Messages.GetOr(run.State(), nil)
	done, script := 0, ""
	for _, m := range slices.Backward(msgs) {
		if m.Role() == "user" {
			script = m.Text()
			break
		}
		if m.Role() == "assistant" {
			done++
		}
	}
	step := "say done"
	var sets []string // in front of the step
	for _, line := range strings.Split(script, "\n") {
		if strings.HasPrefix(line, "set ") {
			sets = append(sets, line)
		} else if done--; done < 0 {
			step = line
			break
		} else {
			sets = nil
		}
	}
	for _, line := range sets {
		f := strings.SplitN(line, " ", 3)
		var value any
		if err := json.Unmarshal([]byte(f[2]), &value); err != nil {
			return err
		}
		if err := run.State().KV().Set(f[1], value); err != nil {
			return err
		}
	}
	what, text, _ := strings.Cut(step, " ")
	r := state.InferenceResult{Agent: "desk", CreatedAt: time.Unix(int64(len(msgs)), 0)}
	switch what {
	case "fail":
		d.failed.Add(1)
		return errors.New("the model is away, with " + secret)
	case "panic":
		panic(secret)
	case "stop": // how an answer ends, and its text, if there is one
		how, said, _ := strings.Cut(text, " ")
		r.Stop = state.Stop(how)
		if said != "" {
			run.Emit(said)
			r.Output = []state.Message{state.AssistantText(said)}
		}
	case "call":
		calls := callsOf(text, len(msgs))
		for i, c := range calls {
			run.EmitInput(i, c.Name, string(c.Input[:4]))
			if i == 0 && strings.Contains(text, "hold:") {
				if err := d.hold(ctx); err != nil {
					return err
				}
			}
			run.EmitInput(i, c.Name, string(c.Input[4:]))
		}
		r.Output = []state.Message{state.ToolCalls(calls...)}
	case "think":
		run.EmitThought("H")
		run.EmitThought("m.")
		if text == "hold" {
			if err := d.hold(ctx); err != nil {
				return err
			}
		}
		run.Emit("thought")
		m, err := state.Parts("assistant", state.JSON(`{"type":"thinking","thinking":"Hm."}`), state.JSON(`{"type":"text","text":"thought"}`))
		if err != nil {
			return err
		}
		r.Output = []state.Message{m}
	default:
		text := strings.TrimPrefix(step, "say ")
		for _, word := range strings.SplitAfter(text, " ") {
			if strings.TrimSpace(word) == "hold" {
				if err := d.hold(ctx); err != nil {
					return err
				}
			}
			run.Emit(word)
		}
		r.Output = []state.Message{state.AssistantText(text)}
	}
	return t.Said(ctx, r)
}

// hold waits until the model may go on.
func (d *desk) hold(ctx context.Context) error {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callsOf returns calls such as note:a pay:b.
func callsOf(text string, n int) (calls []state.ToolCall) {
	for i, word := range strings.Fields(text) {
		name, arg, _ := strings.Cut(word, ":")
		if name == "hold" {
			continue
		}
		input, _ := state.JSONOf(map[string]string{"text": arg})
		calls = append(calls, state.ToolCall{ID: fmt.Sprint("c", (n+i)%2), Name: name, Input: input}) // not unique
	}
	return calls
}

// letGo lets models go on that hold.
func (d *desk) letGo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.held)
	d.held = make(chan struct{})
}

func (d *desk) view(user, thread string) *workspace.View {
	v, err := d.m.View(context.Background(), workspace.Thread(user, thread))
	require.NoError(d.t, err)
	return v
}

// pageOf returns what a page of ann shows.
func (d *desk) pageOf(thread string) *pages.Page {
	p, err := (&pages.Source{Manager: d.m, Agent: "ui"}).Read(context.Background(), workspace.Thread("ann", thread))
	require.NoError(d.t, err)
	return p
}

// clients are the clients of both versions, in one process of Node.
type clients struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Scanner
	n   int
}

func newClients(t testing.TB) *clients {
	if _, err := os.Stat("clients/node_modules"); err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "agui") {
			t.Fatal("clients/node_modules is missing")
		}
		t.Skip("NOT TESTED: no npm ci in clients")
	}
	cmd := exec.Command("node", "clients/clients.mjs")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c := &clients{t: t, in: in, out: bufio.NewScanner(out)}
	c.out.Buffer(nil, 64<<20)
	return c
}

// page is a page with one client.
type page struct {
	c       *clients
	d       *desk
	id      string
	version int
	user    string
	thread  string
	said    int
}

// shown is what a page shows, and what has come of its last request.
type shown struct {
	Messages   []map[string]any
	State      map[string]any
	Interrupts []struct{ ID, Reason, Message, ToolCallID string }
	Pending    []string
	Events     []map[string]any
	Error      string
	Warnings   []string
}

func (s *shown) types() (types []string) {
	for _, e := range s.Events {
		types = append(types, e["type"].(string))
	}
	return types
}

// count returns how many events of a type there are.
func (s *shown) count(typ string) (n int) {
	for _, t := range s.types() {
		if t == typ {
			n++
		}
	}
	return n
}

type object = map[string]any

func (c *clients) do(command object) *shown {
	line, err := json.Marshal(command)
	require.NoError(c.t, err)
	_, err = c.in.Write(append(line, '\n'))
	require.NoError(c.t, err)
	require.True(c.t, c.out.Scan(), "no answer of Node: %v", c.out.Err())
	s := &shown{}
	require.NoError(c.t, json.Unmarshal(c.out.Bytes(), s))
	return s
}

func (d *desk) page(c *clients, version int, user, thread string) *page {
	c.n++
	p := &page{c: c, d: d, id: fmt.Sprint("p", c.n), version: version, user: user, thread: thread}
	p.open()
	return p
}

// open opens the page, again without what it has shown if it was open.
func (p *page) open() {
	p.c.do(object{"op": "open", "id": p.id, "version": p.version, "url": p.d.srv.URL, "thread": p.thread, "headers": object{"User": p.user}})
}

// move lets the page go on with the server that was opened last.
func (p *page) move() { p.do("move", object{"url": p.d.srv.URL}) }

func (p *page) do(op string, with object) *shown {
	command := object{"op": op, "id": p.id}
	for k, v := range with {
		command[k] = v
	}
	return p.c.do(command)
}

// say says something and waits for what comes of it.
func (p *page) say(text string) *shown {
	p.said++
	return p.send(object{"id": fmt.Sprint(p.id, "-", p.said), "role": "user", "content": text})
}

func (p *page) send(m object) *shown {
	p.do("say", object{"messages": []object{m}})
	return p.run(nil)
}

func (p *page) run(with object) *shown { return p.do("run", with) }

// catchUp follows the thread until nothing is under way.
func (p *page) catchUp() *shown { return p.run(object{"until": "RUN_FINISHED"}) }

// await waits until a page that follows has what is there.
func (p *page) await() *shown {
	s := p.do("wait", object{"version": fmt.Sprint(p.d.view(p.user, p.thread).Version)})
	require.Empty(p.c.t, s.Error)
	return s
}

// mustBe demands that the page shows what the workspace has.
func (p *page) mustBe(s *shown, what ...any) {
	p.c.t.Helper()
	require.Empty(p.c.t, s.Warnings, what...)
	v := p.d.view(p.user, p.thread)
	require.Equal(p.c.t, saidIn(v), textsOf(s.Messages), what...)
	want := map[string]any{}
	st := v.State().As("ui")
	for _, f := range st.Fields() {
		if f.Set && !f.Secret && f.Name != "messages" {
			value, _ := st.KV().JSON(f.Name)
			var decoded any
			require.NoError(p.c.t, json.Unmarshal([]byte(v.Redact(string(value))), &decoded))
			want[f.Name] = decoded
		}
	}
	got := map[string]any{}
	for k, v := range s.State {
		if k != "$version" {
			got[k] = v
		}
	}
	require.Equal(p.c.t, want, got, what...)
}

// saidIn returns the conversation in short, and textsOf that of a page.
func saidIn(v *workspace.View) (lines []string) {
	stored := map[string]bool{}
	for m := range v.Messages(0, -1) {
		stored[m.Run] = true
		switch m := m.Message.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				lines = append(lines, v.Redact("call "+c.Name+" "+string(c.Input)))
			}
		case state.ToolResultMessage:
			if text := "The call has failed."; !m.IsError() || strings.HasPrefix(m.Text(), "The call was refused") {
				lines = append(lines, v.Redact("tool "+m.Text()))
			} else {
				lines = append(lines, "tool "+text)
			}
		default:
			lines = append(lines, v.Redact(m.Role()+" "+m.Text()))
		}
	}
	for _, d := range v.DeadLetters {
		if !stored[d.Message.ID] {
			lines = append(lines, v.Redact("user "+d.Message.Content.Text()))
		}
	}
	return lines
}

// idsOf returns the ids of messages of a role.
func (s *shown) idsOf(role string) (ids []string) {
	for _, m := range s.Messages {
		if m["role"] == role {
			ids = append(ids, m["id"].(string))
		}
	}
	return ids
}

// roles returns the roles of all messages, thoughts as well.
func (s *shown) roles() (list []string) {
	for _, m := range s.Messages {
		list = append(list, m["role"].(string))
	}
	return list
}

func textsOf(messages []map[string]any) (lines []string) {
	for _, m := range messages {
		if m["role"] == "reasoning" || m["role"] == "activity" {
			continue
		}
		calls, _ := m["toolCalls"].([]any)
		for _, c := range calls {
			f := c.(map[string]any)["function"].(map[string]any)
			lines = append(lines, fmt.Sprint("call ", f["name"], " ", f["arguments"]))
		}
		if len(calls) == 0 {
			text, _ := m["content"].(string)
			lines = append(lines, fmt.Sprint(m["role"], " ", text))
		}
	}
	return lines
}

// eachVersion runs a test for both versions of the client.
func eachVersion(t *testing.T, test func(t *testing.T, version int)) {
	for version := range 2 {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { test(t, version) })
	}
}

package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// operator may do everything.
var operator = inspect.Access{Read: true, Write: true, Delete: true, Actor: "ann"}

// actionDesk is a handler that lets everybody do everything, and its log.
type actionDesk struct {
	*fixture
	*inspect.Handler
	log bytes.Buffer
}

func newActionDesk(t testing.TB, access inspect.Access) *actionDesk {
	t.Helper()
	d := &actionDesk{fixture: newFixture(t, 0)}
	d.Handler = d.handler(t, &inspect.Options{
		Authorize: inspect.Trusted(access), Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	return d
}

// post sends a form, as the browser of this machine does.
func post(t testing.TB, h http.Handler, target string, form url.Values) response {
	t.Helper()
	r := localRequest(http.MethodPost, target, form.Encode()+"&")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return send(t, h, r)
}

// formOf returns the fields of the form of a page that is sent to an address
// that ends in action, and where it leads.
func formOf(t testing.TB, target, body, action string) (to string, form url.Values) {
	t.Helper()
	for n := range parse(t, body).Descendants() {
		if n.Data != "form" || !strings.Contains(attribute(n, "action"), action) || attribute(n, "method") != "post" {
			continue
		}
		form = url.Values{}
		for field := range n.Descendants() {
			name := attribute(field, "name")
			switch {
			case name == "" || attribute(field, "type") == "checkbox":
			case field.Data == "textarea" && field.FirstChild != nil:
				form.Set(name, field.FirstChild.Data)
			default:
				form.Set(name, attribute(field, "value"))
			}
		}
		return resolve(t, target, attribute(n, "action")), form
	}
	require.Fail(t, "no form", "%s on %s: %s", action, target, body)
	return "", nil
}

// page follows the redirect of an action.
func follow(t testing.TB, h http.Handler, target string, p response) response {
	t.Helper()
	require.Equal(t, http.StatusSeeOther, p.code, p.body)
	return get(t, h, resolve(t, target, p.header.Get("Location")))
}

func (d *actionDesk) view(t testing.TB, user string) *workspace.View {
	t.Helper()
	v, err := d.manager.View(context.Background(), user)
	require.NoError(t, err)
	return v
}

func TestRetryAndDiscard(t *testing.T) {
	d := newActionDesk(t, operator)
	p := get(t, d, "/workspace?user=carol")
	require.Contains(t, p.body, "the bank has refused the card")
	to, form := formOf(t, "/workspace", p.body, "/workspace/retry")
	require.NotContains(t, form.Encode(), "refused", "the form names the message by a hash")
	done := follow(t, d, to, post(t, d, to, form))
	require.Contains(t, done.body, "at the end of the queue")
	require.Contains(t, done.body, "This process goes on with it")
	out, err := d.manager.Await(context.Background(), "carol", "refused")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusFailed, out.Status)
	require.Len(t, d.view(t, "carol").DeadLetters, 1, "it has failed again")

	discard := "/workspace/discard?user=carol&message=" + form.Get("message")
	p = get(t, d, discard)
	require.Contains(t, p.body, "Drop this message?")
	require.Len(t, d.view(t, "carol").DeadLetters, 1, "a GET changes nothing")
	to, form = formOf(t, discard, p.body, "/workspace/discard")
	require.Contains(t, follow(t, d, to, post(t, d, to, form)).body, "was dropped")
	require.Empty(t, d.view(t, "carol").DeadLetters)
	require.Equal(t, http.StatusNotFound, post(t, d, to, form).code, "sent twice")
	require.Contains(t, d.log.String(), "actor=ann action=discard user=carol outcome=done")
}

func TestActionsDuringARun(t *testing.T) {
	d := newActionDesk(t, operator)
	run := d.view(t, "bob").Run.ID
	list := get(t, d, "/workspace?user=bob")
	var cancel string
	for _, link := range linksOf(t, list.body) {
		if strings.Contains(link, "/workspace/cancel") {
			cancel = resolve(t, "/workspace", link)
		}
	}
	require.NotContains(t, cancel, run, "the form names the run by a hash")
	p := get(t, d, cancel)
	require.Contains(t, p.body, "End this run?")
	to, form := formOf(t, cancel, p.body, "/workspace/cancel")
	form.Set("reason", "it takes too long")
	require.Contains(t, follow(t, d, to, post(t, d, to, form)).body, "This process holds the run")
	ended := d.view(t, "bob").Ended
	require.True(t, slices.ContainsFunc(ended, func(e workspace.EndedMessage) bool {
		return e.ID == "b1" && e.As == work.EndingCancelled && e.Reason == "it takes too long"
	}), "%+v", ended)
	require.Equal(t, http.StatusNotFound, post(t, d, to, form).code, "the run that follows is not ended")
}

func TestResetAndDelete(t *testing.T) {
	for action, users := range map[string][]string{"reset": {"alice", "bob", "dave"}, "delete": {"alice", "carol", "dave", "a/b?x=1", ".."}} {
		for _, user := range users {
			t.Run(action+" "+user, func(t *testing.T) {
				d := newActionDesk(t, operator)
				target := "/workspace/" + action + "?" + url.Values{"user": {user}}.Encode()
				p := get(t, d, target)
				require.Equal(t, http.StatusOK, p.code, p.body)
				require.Contains(t, p.body, "This is lost:")
				to, form := formOf(t, target, p.body, "/workspace/"+action)
				before := summaryOrZero(d, user)
				for _, wrong := range []string{"", user + " ", strings.ToUpper(user) + "x"} {
					form.Set("confirm", wrong)
					require.Equal(t, http.StatusUnprocessableEntity, post(t, d, to, form).code, "%q", wrong)
				}
				require.Equal(t, before, summaryOrZero(d, user))
				form.Set("confirm", user)
				require.Equal(t, http.StatusOK, follow(t, d, to, post(t, d, to, form)).code)
				v := d.view(t, user)
				require.Empty(t, v.Memory().List())
				require.Nil(t, v.Run)
				again := map[string]int{"reset": http.StatusSeeOther, "delete": http.StatusNotFound}
				require.Equal(t, again[action], post(t, d, to, form).code, "sent twice")
				require.Contains(t, d.log.String(), "action="+action)
			})
		}
	}
}

func summaryOrZero(d *actionDesk, user string) uint64 {
	s, _ := d.manager.Summary(context.Background(), user)
	return s.Seq
}

func postForm(t testing.TB, h http.Handler, target, form string) response {
	t.Helper()
	return send(t, h, localRequest(http.MethodPost, target, form))
}

func summaryOf(t testing.TB, f *fixture, user string) workspace.Summary {
	t.Helper()
	s, err := f.manager.Summary(context.Background(), user)
	require.NoError(t, err)
	return s
}

// TestDecisionsAboutACall lets a person decide about a call that waits.
func TestDecisionsAboutACall(t *testing.T) {
	for action, want := range map[string]func(key string) tool.Decision{
		"approve": tool.Approve, "refuse": func(key string) tool.Decision { return tool.Refuse(key, "") },
		"answer": func(key string) tool.Decision { return tool.AnswerWith(key, `"Yes, but in May."`) },
	} {
		t.Run(action, func(t *testing.T) {
			var got workspace.Message
			m := openMemory(t, &workspace.Options{Schema: desk, Run: func(_ context.Context, run *workspace.Run) error {
				if got = run.Message(); got.ID == "asks" {
					return suspendIn(run, "pay")
				}
				var results []state.ToolResultMessage
				for _, call := range run.State().History().Pending() {
					results = append(results, state.ToolResult(call, `"made"`))
				}
				return run.State().History().Answer(results...)
			}})
			_, err := m.Handle(t.Context(), "grace", workspace.Message{ID: "asks", Content: state.UserText("Pay it.")})
			require.NoError(t, err)
			v, err := m.View(t.Context(), "grace")
			require.NoError(t, err)
			key := v.Suspended()[0].Key
			h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(operator)})
			target := "/workspace?user=grace"
			p := get(t, h, target)
			require.Contains(t, p.body, `{&#34;amount&#34;:900}`)
			if action == "answer" {
				target = resolve(t, target, linkTo(t, p.body, "/workspace/answer"))
				p = get(t, h, target)
			}
			to, form := formOf(t, target, p.body, "/workspace/"+action)
			require.NotContains(t, form.Encode(), key, "the form names the call by a hash")
			if action == "answer" {
				form.Set("text", "Yes, but in May.")
			}
			done := follow(t, h, to, post(t, h, to, form))
			require.Contains(t, done.body, "This process goes on with it")
			require.NoError(t, m.Wait(t.Context()))
			require.Equal(t, []tool.Decision{want(key)}, got.Decisions)
			require.Contains(t, []int{http.StatusNotFound, http.StatusConflict}, post(t, h, to, form).code, "sent twice")
		})
	}
}

// TestACallThatMayHaveBeenMadeIsMadeAgainOnlyIfSomebodySaysSo has one of a tool
// with Once whose run has ended without a result.
func TestACallThatMayHaveBeenMadeIsMadeAgainOnlyIfSomebodySaysSo(t *testing.T) {
	made := 0
	pay := tool.Must(tool.New("pay", "Pays.", func(context.Context, struct{}) (string, error) { made++; return "paid", nil }, tool.Once()))
	m := openMemory(t, &workspace.Options{Schema: desk, Attempts: 1, Run: func(ctx context.Context, run *workspace.Run) error {
		history := run.State().History()
		if run.Message().ID == "asks" {
			call := state.ToolCall{ID: "pay", Name: "pay", Input: `{}`}
			if err := history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}); err != nil {
				return err
			}
		}
		_, err := tool.Run(ctx, run.State(), []*tool.Tool{pay}, history.Pending())
		return errors.Join(err, errors.New("the result is lost"))
	}})
	_, err := m.Handle(t.Context(), "grace", workspace.Message{ID: "asks", Content: state.UserText("Pay it.")})
	require.ErrorContains(t, err, "the result is lost")
	require.Equal(t, 1, made)
	h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(operator)})
	p := get(t, h, "/workspace?user=grace")
	require.Contains(t, p.body, "it may have been made")
	require.NotContains(t, p.body, "/workspace/approve")
	to, form := formOf(t, "/workspace", p.body, "/workspace/again")
	follow(t, h, to, post(t, h, to, form))
	require.NoError(t, m.Wait(t.Context()))
	require.Equal(t, 2, made)
}

// TestADecisionThatWaitsIsShown decides about a call while another message is
// handled.
func TestADecisionThatWaitsIsShown(t *testing.T) {
	f := newFixture(t, 0)
	suspend(t, f.manager, "grace", "pay", "pay") // two calls with one id
	_, err := f.manager.Submit(t.Context(), "grace", workspace.Message{ID: "other", Content: state.UserText("Hello?")})
	require.NoError(t, err)
	h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(operator)})
	p := get(t, h, "/workspace?user=grace")
	to, form := formOf(t, "/workspace", p.body, "/workspace/approve")
	p = follow(t, h, to, post(t, h, to, form))
	require.Contains(t, p.body, "A message about it waits.")
	require.Equal(t, 1, strings.Count(p.body, "A message about it waits."), "only its card is marked")
	require.Equal(t, http.StatusConflict, post(t, h, to, form).code, "sent twice")
	to, form = formOf(t, "/workspace", p.body, "/workspace/approve")
	p = follow(t, h, to, post(t, h, to, form))
	require.NotContains(t, p.body, "/workspace/approve")
}

// TestDecisionsNeedAManagerThatHandlesMessages has one that does not.
func TestDecisionsNeedAManagerThatHandlesMessages(t *testing.T) {
	f := newFixture(t, 0)
	suspend(t, f.manager, "grace", "pay")
	h := newHandler(t, f.open(t, &workspace.Options{Schema: desk}), &inspect.Options{Authorize: inspect.Trusted(operator)})
	p := get(t, h, "/workspace?user=grace")
	require.NotContains(t, p.body, "/workspace/approve")
	require.Contains(t, p.body, "the page of a program that handles messages")
	for _, action := range []string{"approve", "refuse", "answer", "again"} {
		require.Equal(t, http.StatusNotFound, post(t, h, "/workspace/"+action+"?user=grace", url.Values{"call": {"x"}}).code)
	}
}

// linkTo returns the first address of a page that leads to a path.
func linkTo(t testing.TB, body, path string) string {
	t.Helper()
	for _, link := range linksOf(t, body) {
		if strings.Contains(link, path) {
			return link
		}
	}
	require.Fail(t, "no link", "%s in %s", path, body)
	return ""
}

// slowForm is a form of which nothing comes.
type slowForm struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (f *slowForm) SetReadDeadline(t time.Time) error {
	f.deadline = t
	return nil
}

func (f *slowForm) Read([]byte) (int, error) {
	if f.deadline.IsZero() {
		select {} // for ever
	}
	time.Sleep(time.Until(f.deadline))
	return 0, os.ErrDeadlineExceeded
}

func TestFormsThatTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newActionDesk(t, operator)
		form := &slowForm{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, "/workspace/retry?user=alice", form)
		r.Host = "localhost:8377"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		began := time.Now()
		d.ServeHTTP(form, r)
		require.Equal(t, http.StatusRequestTimeout, form.Code)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

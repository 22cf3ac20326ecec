package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
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

// change fills in the form on a page, confirms the preview, and returns the
// answer and the preview.
func change(t testing.TB, h http.Handler, target string, fill url.Values) (done, preview response) {
	t.Helper()
	p := get(t, h, target)
	require.Equal(t, http.StatusOK, p.code, target)
	to, form := formOf(t, target, p.body, "/workspace/edit")
	for name, values := range fill {
		form[name] = values
	}
	preview = post(t, h, to, form)
	require.Equal(t, http.StatusOK, preview.code, preview.body)
	to, form = formOf(t, to, preview.body, "/workspace/apply")
	return post(t, h, to, form), preview
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

func TestSetAField(t *testing.T) {
	tests := []struct {
		name, target string
		fill         url.Values
		field, want  string
		shown        []string // in the preview
	}{
		{"replace", "field=order_id", url.Values{"value": {`"#W7"`}}, "order_id", `"#W7"`, []string{"#W2378156", "#W7"}},
		{"replace a list", "field=notes", url.Values{"value": {`["a",  "b"]`}}, "notes", `["a","b"]`, []string{"removed", "30 days"}},
		{"append", "field=notes&edit=apply", url.Values{"value": {`["more"]`}}, "notes",
			`["refunds within 30 days","paid with [SECRET]","more"]`, []string{"more"}},
		{"add", "field=cost&edit=apply", url.Values{"value": {`1.5`}}, "cost", `1.5242`, []string{"1.5242"}},
		{"delete", "field=order_id&edit=delete", nil, "order_id", "", []string{"removed"}},
		{"set what is unset", "field=cache", url.Values{"value": {`"warm"`}}, "cache", "", nil}, // ephemeral
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newActionDesk(t, operator)
			before := d.view(t, "alice")
			target := "/workspace/edit?user=alice&" + test.target
			done, preview := change(t, d, target, test.fill)
			for _, text := range test.shown {
				require.Contains(t, preview.body, text)
			}
			p := follow(t, d, "/workspace/apply", done)
			require.Equal(t, http.StatusOK, p.code)
			v := d.view(t, "alice")
			j, ok := v.State().KV().JSON(test.field)
			require.Equal(t, test.want != "", ok)
			require.Equal(t, state.JSON(test.want), j)
			require.Contains(t, d.log.String(), `msg=action actor=ann action=`)
			require.Contains(t, d.log.String(), `user=alice outcome=done`)
			if test.name == "set what is unset" {
				return
			}
			require.Equal(t, before.Version+1, v.Version)
			for r, err := range d.manager.Records(context.Background(), "alice", before.Version) {
				require.NoError(t, err)
				require.Equal(t, workspace.Kind("update"), r.Kind)
				require.True(t, slices.ContainsFunc(r.Effects, func(e state.Effect) bool {
					return e.Cause == "inspect:ann" && e.Agent == ""
				}), "%+v", r.Effects)
			}
		})
	}
}

func TestAPreviewStoresNothing(t *testing.T) {
	d := newActionDesk(t, operator)
	before := summaryOf(t, d.fixture, "alice")
	_, form := formOf(t, "/workspace/edit", get(t, d, "/workspace/edit?user=alice&field=order_id").body, "/edit")
	form.Set("value", `"#W7"`)
	require.Equal(t, http.StatusOK, post(t, d, "/workspace/edit?user=alice", form).code)
	require.Equal(t, before.Seq, summaryOf(t, d.fixture, "alice").Seq)
}

func TestMemoryEntries(t *testing.T) {
	d := newActionDesk(t, operator)
	done, preview := change(t, d, "/workspace/edit?user=alice&memory=name", url.Values{"value": {"Alice B.\r\nof Oslo"}})
	require.Contains(t, preview.body, "Alice B.")
	require.Contains(t, follow(t, d, "/workspace/apply", done).body, "The value was stored.")
	done, _ = change(t, d, "/workspace/edit?user=alice&memory=pin", url.Values{"value": {"pin-9931-zz"}, "secret": {"1"}})
	require.Equal(t, http.StatusSeeOther, done.code)
	done, _ = change(t, d, "/workspace/edit?user=alice&memory=token", url.Values{"value": {"tok-5822-def"}})
	require.Equal(t, http.StatusSeeOther, done.code)
	memory := d.view(t, "alice").Memory()
	name, _ := memory.Get("name")
	require.Equal(t, "Alice B.\nof Oslo", name.Value)
	pin, _ := memory.Get("pin")
	require.True(t, pin.Secret)
	require.Equal(t, "pin-9931-zz", pin.Value)
	token, _ := memory.Get("token")
	require.True(t, token.Secret, "a secret entry stays secret")
	require.Equal(t, "tok-5822-def", token.Value)

	done, _ = change(t, d, "/workspace/edit?user=alice&memory=pin&edit=delete", nil)
	require.Equal(t, http.StatusSeeOther, done.code)
	_, ok := d.view(t, "alice").Memory().Get("pin")
	require.False(t, ok)
	require.Equal(t, http.StatusNotFound, get(t, d, "/workspace/edit?user=alice&memory=pin&edit=delete").code)
}

func TestSecretsCanBeWrittenAndAreNeverShown(t *testing.T) {
	const newNumber = "9999-8888-7777"
	d := newActionDesk(t, operator)
	form := get(t, d, "/workspace/edit?user=alice&field=card")
	require.Contains(t, form.body, `type="password"`)
	done, preview := change(t, d, "/workspace/edit?user=alice&field=card", url.Values{"value": {newNumber}})
	after := follow(t, d, "/workspace/apply", done)
	number, err := card.Get(d.view(t, "alice").State())
	require.NoError(t, err)
	require.Equal(t, newNumber, number)

	// A value that repeats a secret is not shown either, nor is one that was
	// refused or that comes too late.
	to, fields := formOf(t, "/workspace/edit", get(t, d, "/workspace/edit?user=alice&field=order_id").body, "/workspace/edit")
	fields.Set("value", `"paid with `+newNumber+`"`)
	repeated := post(t, d, to, fields)
	require.Contains(t, repeated.body, "paid with [SECRET]")
	fields.Set("value", `["`+newNumber+`"]`)
	refused := post(t, d, to, fields)
	require.Equal(t, http.StatusUnprocessableEntity, refused.code)
	fields.Set("value", `"paid with `+newNumber+`"`)
	fields.Set("version", "1")
	late := post(t, d, to, fields)
	require.Equal(t, http.StatusConflict, late.code)
	to, fields = formOf(t, "/workspace/edit", get(t, d, "/workspace/edit?user=alice&field=card").body, "/workspace/edit")
	fields.Set("value", newNumber+"-new")
	fields.Set("version", "1")
	lateSecret := post(t, d, to, fields)
	require.Equal(t, http.StatusConflict, lateSecret.code)

	// The notes repeat the former number: a form that began with what is shown
	// would store the mask.
	notes := get(t, d, "/workspace/edit?user=bob&field=notes")
	for _, p := range []response{form, preview, done, after, repeated, refused, late, lateSecret, notes} {
		require.NotContains(t, p.body+fmt.Sprint(p.header), newNumber)
	}
	require.NotContains(t, d.log.String(), newNumber)
}

func TestAFormDoesNotBeginWithWhatWasMasked(t *testing.T) {
	d := newActionDesk(t, operator)
	p := get(t, d, "/workspace/edit?user=alice&field=notes")
	require.Contains(t, p.body, "Type the whole value.")
	_, form := formOf(t, "/workspace/edit", p.body, "/edit")
	require.Empty(t, form.Get("value"))
	_, form = formOf(t, "/workspace/edit", get(t, d, "/workspace/edit?user=alice&field=plan").body, "/edit")
	require.JSONEq(t, `{"steps":["check","refund"],"total":12.5}`, form.Get("value"))
	d.update(t, "alice", func(st *state.State) error { return orderID.Replace(st, "a\u202eb\r\n\U000e0041") })
	_, form = formOf(t, "/workspace/edit", get(t, d, "/workspace/edit?user=alice&field=order_id").body, "/edit")
	require.Equal(t, `"a\u202eb\r\n\udb40\udc41"`, strings.TrimSpace(form.Get("value")))
}

func TestValuesThatAreRefused(t *testing.T) {
	d := newActionDesk(t, operator)
	before := summaryOf(t, d.fixture, "alice").Seq
	for _, test := range []struct{ target, value, want string }{
		{"field=order_id", `{"a":`, "strict JSON"},
		{"field=order_id", `7`, "want string, got number"},
		{"field=cost", `"x"`, "want number, got string"},
		{"field=order_id", `"#W2378156"`, "That changes nothing."},
		{"memory=name", "Alice", "That changes nothing."},
	} {
		target := "/workspace/edit?user=alice&" + test.target
		to, form := formOf(t, target, get(t, d, target).body, "/workspace/edit")
		form.Set("value", test.value)
		p := post(t, d, to, form)
		require.Equal(t, http.StatusUnprocessableEntity, p.code, test.value)
		require.Contains(t, p.body, test.want)
		_, form = formOf(t, to, p.body, "/workspace/edit")
		require.Equal(t, test.value, strings.TrimSpace(form.Get("value")), "what was typed is still there")
	}
	require.Equal(t, before, summaryOf(t, d.fixture, "alice").Seq)
}

func TestValidateApplies(t *testing.T) {
	db := store.NewMemory()
	age := &state.Field[int64]{Name: "age", Read: state.Public, Write: state.Public, Validate: func(v int64) error {
		if v < 0 {
			return errors.New("an age is not negative")
		}
		return nil
	}}
	m, err := workspace.Open(context.Background(), db, &workspace.Options{Schema: state.MustSchema(state.Team{"a": nil}, age)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	require.NoError(t, m.Update(context.Background(), "ann", func(w *workspace.Workspace) error { return age.Set(w.State(), 7) }))
	h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(operator)})
	to, form := formOf(t, "/workspace/edit", get(t, h, "/workspace/edit?user=ann&field=age").body, "/workspace/edit")
	form.Set("value", "-1")
	p := post(t, h, to, form)
	require.Equal(t, http.StatusUnprocessableEntity, p.code)
	require.Contains(t, p.body, "an age is not negative")
}

func TestAConflictShowsBothValues(t *testing.T) {
	d := newActionDesk(t, operator)
	target := "/workspace/edit?user=alice&field=order_id"
	to, form := formOf(t, target, get(t, d, target).body, "/workspace/edit")
	form.Set("value", `"#mine"`)
	preview := post(t, d, to, form)
	applyTo, apply := formOf(t, to, preview.body, "/workspace/apply")
	d.update(t, "alice", func(st *state.State) error { return orderID.Set(st.As("support"), "#theirs") })

	for _, p := range []response{post(t, d, to, form), post(t, d, applyTo, apply)} {
		require.Equal(t, http.StatusConflict, p.code)
		require.Contains(t, p.body, "has changed since you began")
		require.Contains(t, p.body, "#theirs")
		require.Contains(t, p.body, "#mine")
		_, again := formOf(t, to, p.body, "/workspace/edit")
		require.Equal(t, fmt.Sprint(d.view(t, "alice").Version), again.Get("version"))
	}
	require.Equal(t, "#theirs", orderID.Or(d.view(t, "alice").State(), ""))
	require.Contains(t, d.log.String(), "action=replace user=alice outcome=conflict")
}

func TestRevert(t *testing.T) {
	d := newActionDesk(t, operator)
	require.Contains(t, get(t, d, "/workspace?user=alice&at=3").body, "/workspace/revert?to=3&amp;user=alice")
	before := d.view(t, "alice").Version
	target := "/workspace/revert?user=alice&to=3"
	p := get(t, d, target)
	require.Equal(t, http.StatusOK, p.code)
	require.Contains(t, p.body, "#W2378156")
	require.NotContains(t, p.body, cardNumber)
	first := get(t, d, "/workspace/revert?user=alice&to=2").body // before there were memories
	require.Contains(t, first, `<bdi class="v">name</bdi>`)
	require.NotContains(t, first, `<bdi class="v">token</bdi>`, "secret entries stay")
	to, form := formOf(t, target, p.body, "/workspace/revert")
	require.Contains(t, follow(t, d, to, post(t, d, to, form)).body, "has the values of version 3")
	v := d.view(t, "alice")
	require.Equal(t, before+1, v.Version)
	require.Equal(t, "#W1", orderID.Or(v.State(), ""))
	require.Equal(t, cardNumber, card.Or(v.State(), ""), "secrets stay")
	for r, err := range d.manager.RecordsBetween(t.Context(), "alice", before, before+1) {
		require.NoError(t, err)
		require.NotEmpty(t, r.Effects)
		for _, e := range r.Effects {
			require.Equal(t, "inspect:ann", e.Cause)
		}
	}

	again := post(t, d, to, form)
	require.Equal(t, http.StatusConflict, again.code)
	require.Equal(t, before+1, d.view(t, "alice").Version)
	require.Equal(t, http.StatusNotFound, get(t, d, "/workspace/revert?user=alice&to=99").code)
}

func TestRetryAndDiscard(t *testing.T) {
	d := newActionDesk(t, operator)
	p := get(t, d, "/workspace/actions?user=carol")
	require.Contains(t, p.body, "the bank has refused the card")
	to, form := formOf(t, "/workspace/actions", p.body, "/workspace/retry")
	require.NotContains(t, form.Encode(), "refused", "the form names the message by a hash")
	done := follow(t, d, to, post(t, d, to, form))
	require.Contains(t, done.body, "at the end of the queue")
	require.Contains(t, done.body, "This process handles it")
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
	target := "/workspace/edit?user=bob&field=order_id"
	to, form := formOf(t, target, get(t, d, target).body, "/workspace/edit")
	form.Set("value", `"#W7"`)
	preview := post(t, d, to, form)
	require.Contains(t, preview.body, "A run is under way.")
	to, form = formOf(t, to, preview.body, "/workspace/apply")
	p := post(t, d, to, form)
	require.Equal(t, http.StatusConflict, p.code)
	require.Contains(t, p.body, "A run is under way")
	require.Contains(t, p.body, "#W7", "what was typed is still there")
	require.Contains(t, d.log.String(), "action=replace user=bob outcome=busy")

	run := d.view(t, "bob").Run.ID
	list := get(t, d, "/workspace/actions?user=bob")
	var cancel string
	for _, link := range linksOf(t, list.body) {
		if strings.Contains(link, "/workspace/cancel") {
			cancel = resolve(t, "/workspace/actions", link)
		}
	}
	require.NotContains(t, cancel, run, "the form names the run by a hash")
	p = get(t, d, cancel)
	require.Contains(t, p.body, "End this run?")
	to, form = formOf(t, cancel, p.body, "/workspace/cancel")
	form.Set("reason", "it takes too long")
	require.Contains(t, follow(t, d, to, post(t, d, to, form)).body, "This process holds the run")
	ended := d.view(t, "bob").Ended
	require.True(t, slices.ContainsFunc(ended, func(e workspace.EndedMessage) bool {
		return e.ID == "b1" && e.As == workspace.EndingCancelled && e.Reason == "it takes too long"
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

package inspect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// posts are the addresses of all actions, with forms that would be complete if
// they named something that exists.
var posts = map[string]url.Values{
	"/workspace/approve": {"call": {"0000"}},
	"/workspace/refuse":  {"call": {"0000"}},
	"/workspace/answer":  {"call": {"0000"}, "text": {"yes"}},
	"/workspace/retry":   {"message": {"0000"}},
	"/workspace/discard": {"message": {"0000"}},
	"/workspace/cancel":  {"run": {"0000"}},
	"/workspace/reset":   {"confirm": {"alice"}},
	"/workspace/delete":  {"confirm": {"alice"}},
}

func TestActionsWithoutRightsDoNotExist(t *testing.T) {
	deletes := map[string]bool{"/workspace/reset": true, "/workspace/delete": true}
	decisions := map[string]bool{"/workspace/approve": true, "/workspace/refuse": true, "/workspace/answer": true}
	tests := []struct {
		name   string
		access inspect.Access
		opts   *workspace.Options
		exists func(path string) bool
	}{
		{"reader", inspect.Access{Read: true}, nil, func(string) bool { return false }},
		{"writer", inspect.Access{Read: true, Write: true}, nil, func(p string) bool { return !deletes[p] }},
		{"deleter", inspect.Access{Read: true, Delete: true}, nil, func(p string) bool { return deletes[p] }},
		{"no schema, no run", operator, &workspace.Options{}, func(p string) bool { return !decisions[p] }},
		{"nobody", inspect.Access{Write: true, Delete: true}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, 0)
			m := f.manager
			if test.opts != nil {
				m = f.open(t, test.opts)
			}
			h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(test.access)})
			for path, form := range posts {
				p := post(t, h, path+"?user=nobody", form)
				form := get(t, h, path+"?user=nobody")
				switch {
				case test.exists == nil:
					require.Equal(t, http.StatusForbidden, p.code, path)
				case test.exists(path):
					require.NotContains(t, p.body, "There is no such page.", path)
					require.NotContains(t, form.body, "There is no such page.", path)
				default:
					require.Equal(t, http.StatusNotFound, p.code, path)
					require.Equal(t, http.StatusNotFound, form.code, path)
					require.Contains(t, p.body, "There is no such page.", path)
					require.Contains(t, form.body, "There is no such page.", path)
				}
			}
		})
	}
}

func TestReadOnlyStoreHasNoActions(t *testing.T) {
	f := newFixture(t, 0)
	m, err := workspace.Open(t.Context(), store.ReadOnly(f.db), &workspace.Options{Schema: desk})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(operator)})
	for path, form := range posts {
		require.Equal(t, http.StatusNotFound, post(t, h, path+"?user=alice", form).code, path)
	}
	require.NotContains(t, get(t, h, "/workspace?user=carol").body, "/workspace/retry")
}

func TestRequestsOfOtherSites(t *testing.T) {
	tests := []struct {
		name   string
		change func(r *http.Request)
		code   int // 0 if the request is let through
	}{
		{"same origin", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 0},
		{"typed", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 0},
		{"no browser", func(*http.Request) {}, 0},
		{"cross-site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"same site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		{"own Origin", func(r *http.Request) { r.Header.Set("Origin", "http://localhost:8377") }, 0},
		{"foreign Origin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		{"other port", func(r *http.Request) { r.Header.Set("Origin", "http://localhost:80") }, http.StatusForbidden},
		{"opaque Origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"foreign Host", func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"name that points here", func(r *http.Request) { r.Host = "localhost.evil.example:8377" }, http.StatusMisdirectedRequest},
	}
	d := newActionDesk(t, operator)
	seq := summaryOf(t, d.fixture, "alice").Seq
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for path, form := range posts {
				if form.Has("confirm") {
					form = url.Values{"confirm": {"wrong"}}
				}
				r := localRequest(http.MethodPost, path+"?user=alice", form.Encode())
				test.change(r)
				p := send(t, d, r)
				if test.code != 0 {
					require.Equal(t, test.code, p.code, path)
				} else {
					require.NotContains(t, []int{http.StatusForbidden, http.StatusMisdirectedRequest}, p.code, path)
				}
			}
		})
	}
	require.Equal(t, seq, summaryOf(t, d.fixture, "alice").Seq)
}

func TestFormsThatAreBroken(t *testing.T) {
	d := newActionDesk(t, operator)
	tests := []struct {
		path, body string
		code       int
	}{
		{"/workspace/retry", "message=%zz", http.StatusBadRequest},
		{"/workspace/retry", "message=" + strings.Repeat("x", 1<<20), http.StatusRequestEntityTooLarge},
		{"/workspace/retry", "", http.StatusNotFound},
		{"/workspace/cancel", "run=", http.StatusNotFound},
	}
	version := summaryOf(t, d.fixture, "alice").Version
	require.Equal(t, uint64(5), version)
	for _, test := range tests {
		r := localRequest(http.MethodPost, test.path+"?user=alice", test.body+"&")
		require.Equal(t, test.code, send(t, d, r).code, "%s %.80s", test.path, test.body)
	}
	require.Equal(t, version, summaryOf(t, d.fixture, "alice").Version)
	require.Equal(t, http.StatusConflict, get(t, d, "/workspace?user=alice&note=AAAA").code)
}

func TestActionsWhereverTheHandlerIsMounted(t *testing.T) {
	for _, prefix := range []string{"", "/debug/state", "/a/b/c"} {
		d := newActionDesk(t, operator)
		mux := http.NewServeMux()
		mux.Handle(prefix+"/", http.StripPrefix(prefix, d))
		target := prefix + "/workspace?user=carol"
		to, form := formOf(t, target, get(t, mux, target).body, "/workspace/retry")
		p := follow(t, mux, to, post(t, mux, to, form))
		require.Equal(t, http.StatusOK, p.code)
		require.Contains(t, p.body, "at the end of the queue")
	}
}

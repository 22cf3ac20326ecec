package aguistate_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/adapter/aguistate"
)

// approval returns the body with which a page approves a call.
func approval(key string) string {
	return `{"threadId":"1","runId":"2","resume":[{"interruptId":"` + key + `","status":"resolved","payload":{"approved":true}}]}`
}

// waitingCall returns the key of the only call that waits.
func (d *desk) waitingCall() string {
	calls := d.view("ann", "1").Suspended()
	require.Len(d.t, calls, 1)
	return calls[0].Key
}

// askToPay lets a call wait for a person.
func (d *desk) askToPay() {
	_, err := io.ReadAll(d.post("ann", `{"threadId":"1","runId":"1","messages":[{"id":"m","role":"user","content":"call pay:a\nsay ready"}]}`).Body)
	require.NoError(d.t, err)
	require.Len(d.t, d.view("ann", "1").Suspended(), 1)
}

// request sends a body with the headers of a browser, and returns what is answered.
func (d *desk) request(method, body string, header map[string]string) *http.Response {
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.srv.URL, strings.NewReader(body))
	require.NoError(d.t, err)
	req.Header.Set("User", "ann") // stands for the cookie
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	require.NoError(d.t, resp.Body.Close())
	return resp
}

// A page of another site decides nothing in the name of a user, also not by a
// request that browsers send without a question.
func TestPagesOfOtherSitesDecideNothing(t *testing.T) {
	d := newDesk(t, nil)
	d.askToPay()
	const evil, json = "https://evil.example", "application/json"
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"a simple request":            {map[string]string{"Content-Type": "text/plain", "Origin": evil, "Sec-Fetch-Site": "cross-site"}, 403},
		"a form":                      {map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": evil, "Sec-Fetch-Site": "cross-site"}, 403},
		"a sandboxed page":            {map[string]string{"Content-Type": json, "Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403},
		"a script":                    {map[string]string{"Content-Type": json, "Origin": evil, "Sec-Fetch-Site": "cross-site"}, 403},
		"a sibling domain":            {map[string]string{"Content-Type": json, "Origin": evil, "Sec-Fetch-Site": "same-site"}, 403},
		"an old browser":              {map[string]string{"Content-Type": json, "Origin": evil}, 403},
		"text of the same site":       {map[string]string{"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"}, 415},
		"a body of no type":           {nil, 415},
		"a type that begins like one": {map[string]string{"Content-Type": "application/jsonx"}, 415},
	} {
		t.Run(name, func(t *testing.T) {
			resp := d.request(http.MethodPost, approval(d.waitingCall()), c.header)
			require.Equal(t, c.status, resp.StatusCode)
			require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
			require.Len(t, d.view("ann", "1").Suspended(), 1, "nothing is decided")
		})
	}
	resp := d.request(http.MethodOptions, "", map[string]string{"Origin": evil, "Access-Control-Request-Method": "POST"})
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))

	resp = d.request(http.MethodPost, approval(d.waitingCall()), map[string]string{"Content-Type": json + "; charset=utf-8", "Origin": d.srv.URL, "Sec-Fetch-Site": "same-origin"})
	require.Equal(t, http.StatusOK, resp.StatusCode, "its own page")
	require.Empty(t, d.view("ann", "1").Suspended())
}

// The pages of an origin that is trusted ask first, and may then decide.
func TestTrustedOrigins(t *testing.T) {
	d := newDesk(t, nil)
	d.opts.TrustedOrigins = []string{"https://app.example", "http://localhost:3000"}
	d.reopen()
	d.askToPay()
	for _, other := range []string{"https://app.example.evil.example", "http://app.example", "null", ""} {
		header := map[string]string{"Origin": other, "Access-Control-Request-Method": "POST", "Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"}
		require.Equal(t, http.StatusMethodNotAllowed, d.request(http.MethodOptions, "", header).StatusCode, other)
		resp := d.request(http.MethodPost, approval(d.waitingCall()), header)
		require.Equal(t, http.StatusForbidden, resp.StatusCode, other)
		require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), other)
	}
	require.Len(t, d.view("ann", "1").Suspended(), 1)
	resp := d.request(http.MethodOptions, "", map[string]string{
		"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type",
	})
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.Equal(t, "https://app.example", resp.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "true", resp.Header.Get("Access-Control-Allow-Credentials"))
	require.Equal(t, "POST", resp.Header.Get("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization,content-type", resp.Header.Get("Access-Control-Allow-Headers"))
	require.Equal(t, "Origin", resp.Header.Get("Vary"))

	resp = d.request(http.MethodPost, approval(d.waitingCall()), map[string]string{"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"})
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "https://app.example", resp.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "Origin", resp.Header.Get("Vary"))
	require.Empty(t, d.view("ann", "1").Suspended())
	for _, wrong := range []string{"", "app.example", "https://app.example/", "https://app.example/page", "*"} {
		opts := d.opts
		opts.TrustedOrigins = []string{wrong}
		_, err := aguistate.New(d.m, &opts)
		require.ErrorContains(t, err, "TrustedOrigins", wrong)
	}
}

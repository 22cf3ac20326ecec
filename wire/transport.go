package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// answerBytes is the default of Transport.MaxBytes.
const answerBytes = 64 << 20

// Transport is an [http.RoundTripper] for the http.Client of an SDK. The zero
// Transport sends the conversation of the State after the messages of the
// request, and appends the answer to it. A request that continues a
// conversation which the provider holds (previous_response_id or conversation)
// is sent as with RecordOnly, and its answer is appended. If it has no input, and
// the State ends with a turn of the user or a result, the error is
// [state.ErrInvalid].
//
// A Transport is safe for concurrent use. Its fields must not change while it
// is used, and its functions must be safe for concurrent use.
//
// The functions and the rights are those of the handle that the context of the
// request carries: an agent that may not read the conversation cannot send it.
type Transport struct {
	// Base makes the requests (default http.DefaultTransport).
	Base http.RoundTripper

	// RecordOnly is for a program that has the conversation itself. The request is
	// sent as it is, unless another field changes it, and the answer is recorded
	// in the history and not appended to the conversation of the State.
	RecordOnly bool

	// Window decides what of the conversation is sent (default: the Window of the
	// workspace in whose run the request is made, or all). What the request has
	// besides is counted by its bytes, four for a token.
	// A conversation that does not fit is [transcript.ErrWindow], and the request
	// is not sent.
	Window *transcript.Window

	// Policy returns what is done with calls and results of the conversation
	// that have no counterpart (default transcript.Policy{AnswerCalls: true}). If its
	// Suspended is nil, it has the calls that wait in the run of a workspace, or in
	// the turn of package tool, that ctx carries.
	Policy func(ctx context.Context, st *state.State) transcript.Policy

	// Profile returns the profile by which the conversation is repaired and tools
	// are named, for one that follows from the format and the settings of the
	// request, and from its host and model by [transcript.Profile.At] (default: that
	// one). It is for the options of a model, such as
	// [transcript.Profile.NoPrefill], and for servers that are stricter than the
	// API that they offer and that At does not know; see [transcript.NewProfile].
	Profile func(ctx context.Context, p transcript.Profile) transcript.Profile

	// Prompt returns instructions that stay the same (default: none). They become
	// the last paragraph of the system prompt, in front of everything: if they
	// change, the provider's prompt cache misses for the whole conversation. Prompt
	// is called for each request.
	Prompt func(ctx context.Context, st *state.State) string

	// Context returns what the model should know of the State and what changes, such
	// as [Fields], which shows them all, or the time (default: nothing). It
	// stands between <context> tags behind the conversation: at the
	// end of what the user has said last, or as a message of the user behind
	// results of tools, if the rules of the Profile allow that. It is not
	// recorded, and the next request does not have it. A request that continues a
	// conversation which the provider holds has it in the system prompt, which
	// the provider does not hold. Context is called for each request.
	//
	// What a workspace remembers of the user is at the end of the system prompt in
	// each request of a run, without RecordOnly, whatever Context says.
	Context func(ctx context.Context, st *state.State) string

	// Cache prepares requests for the provider's prompt cache. A request to
	// Anthropic gets breakpoints: after the tools, after the system prompt, at the
	// newest message of the user in front of Context, and at the one before, as
	// far as the program has left some of the four. They live as long as those of
	// the program next to them, or for the shortest time. A request to OpenAI in
	// the context of a run of package workspace gets a prompt_cache_key, which
	// names the workspace without its id, unless it has one. Other providers need
	// nothing.
	Cache bool

	// Logger is told at Warn, each once, that Prompt returns something else than for
	// the latest request of a State, and, without RecordOnly, that a model is called
	// at a path of which Formats does not know the format: the model is sent no
	// conversation, and nothing is recorded (default: nothing is told).
	Logger *slog.Logger

	// Redact masks in what is sent the secrets that the handle may read, as
	// [state.State.Redactor] does, and in a run of a workspace those of its memory.
	// What is recorded of the request is masked as well. Answers are not masked. A
	// secret that is a word of the format, such as "user", makes a request that is
	// refused.
	Redact bool

	// MaxBytes limits the bytes of an answer that are read: those of a whole
	// response, and those of a stream that Raw has, both after they are unpacked
	// (default 64 MiB, which no message can pass; negative: no limit). A longer
	// answer is [state.ErrLimitExceeded] for the reader of its body, and is not
	// recorded. So is one of more than 256 calls.
	MaxBytes int

	// Redirect is called with the request that follows when a provider redirects
	// a call to another host with 307 or 308, before the conversation is sent
	// there. Its Response is that redirect, and its headers are those that
	// net/http keeps, among them keys such as x-api-key. An error refuses it
	// (default: all are refused). Redirect is not called where the SDK refuses
	// such a redirect itself, as openai-go v3.98.0 does.
	Redirect func(req *http.Request) error

	// Formats returns the format of a request, nil for a request that passes
	// untouched (default FormatOf).
	Formats func(req *http.Request) *provider.Format

	// NoWithhold is for a program that mends a refused conversation itself. By
	// default, a request that the provider refuses because of what the conversation
	// has is sent again without that, at most twice: without the part that the error
	// names, or without the pictures and files since the last answer, and then
	// without the results since then. What the user says, instructions and tools
	// stay: if that is refused, the error is that of the SDK, and nothing is
	// withheld. Behind a message that has failed, what that has brought is withheld
	// as well, with its words, in a third request if need be. If nothing else is
	// left, older pictures and results are, and what the model has said last.
	//
	// The model reads a text in the place of each. What the accepted request did not
	// have is stored with its answer, and is withheld from that model from then on:
	// see [transcript.Withhold] and [transcript.ShowWithheld]. Other errors are those
	// of the SDK.
	NoWithhold bool

	// Changed is called with what was repaired before a request with the
	// conversation is sent (default: none). Indexes count the messages of the
	// request, and go on with what Window shows of the conversation.
	Changed func(ctx context.Context, changes []transcript.Change)

	// Omitted is called with what the format cannot express, before a request
	// without it is sent (default: none). Indexes count the messages after the
	// repair.
	Omitted func(ctx context.Context, omitted []provider.Omission)

	// 1 if the Logger knows that the prompt changes, and of a path; atomic
	told, toldPath uint32
}

// RoundTrip sends a request and records the answer. Its errors are those of
// Base, those of requests that cannot be completed: a body that is not in the
// format, or a State that the handle may not read, and those of redirects that
// would lead to an answer that the State does not have, or to another host.
//
// A call of a model whose context has no State is [state.ErrInvalid], unless
// RecordOnly is set: the model would be sent no conversation. To send it all the
// same, say so by [state.NewContext] with nil.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.roundTrip(req, runctx.Refused{})
}

// roundTrip is RoundTrip without what was refused of the conversation.
func (t *Transport) roundTrip(req *http.Request, refused runctx.Refused) (*http.Response, error) {
	base := t.base()
	st, ok := state.FromContext(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		if t.RecordOnly || req.Method != http.MethodPost || t.formatOf(req) == nil {
			return base.RoundTrip(req)
		}
		req = withBody(req, nil) // genai v1.77.0 has nothing to say without contents and settings
	}
	if !ok {
		if ctx := req.Context(); !t.RecordOnly && !isOutside(ctx) && !inside.SaysState(ctx) && t.formatOf(req) != nil {
			req.Body.Close()
			return nil, errNoState
		}
		return base.RoundTrip(req)
	}
	format, err := t.formatOf(req), error(nil)
	if origin := redirectedFrom(req); origin != nil {
		format, err = t.redirected(req, origin)
	}
	if err != nil {
		req.Body.Close()
		return nil, fmt.Errorf("wire: redirect to %s refused: %w", placeOf(req.URL), err)
	}
	if format == nil {
		t.watchPath(req)
		return base.RoundTrip(req)
	}
	c, body, err := t.newCall(req, st, format, refused)
	if err != nil {
		return nil, fmt.Errorf("wire: request: %w", err)
	}
	req = withBody(req, body)
	limitEncodings(req.Header)
	if len(c.sent.names) > 0 {
		req.Header.Del("Accept-Encoding") // then the base unpacks the response
	}
	c.started = time.Now()
	resp, err := base.RoundTrip(req)
	noteFailure(req.Context(), resp, err)
	if err != nil {
		return nil, err
	}
	return t.answered(c, req, resp, refused)
}

// answered returns the response to a call, or that to the call without what this one
// says was refused. It records the answer, or sees to it that it is recorded.
func (t *Transport) answered(
	c *call, req *http.Request, resp *http.Response, refused runctx.Refused,
) (*http.Response, error) {
	if losesBody(resp) {
		resp.Body.Close()
		return nil, fmt.Errorf("wire: the provider answers with status %d: "+
			"the request would be repeated elsewhere without its body", resp.StatusCode)
	}
	if resp.Request == nil {
		resp.Request = req // by which the next request knows that it is a redirect
	}
	if resp.StatusCode != http.StatusOK {
		if t.NoWithhold {
			return resp, nil
		}
		if more := c.toWithhold(resp); len(more) > 0 {
			resp.Body.Close()
			refused.Withheld, refused.Times = append(refused.Withheld, more...), refused.Times+1
			return t.roundTrip(withBody(req, c.asked), refused)
		}
		return resp, nil
	}
	c.asked, c.body, c.sent.files = nil, nil, nil // they are long, and the answer may take minutes
	ofOpenAI := c.format == provider.OpenAI || c.format == provider.OpenAIResponses
	if ofOpenAI && (c.sent.streams || isEventStream(resp.Header)) && resp.Header.Get("Content-Encoding") == "" {
		changeBody(resp, withoutErrors)
	}
	restoreNames(resp, c.sent.names)
	c.receive(resp)
	return resp, nil
}

// errNoState is the error of a call of a model that would be without a conversation.
var errNoState = fmt.Errorf("wire: request: %w: its context has no State, and the model would be sent no conversation: "+
	"use state.NewContext, with nil if there is to be none", state.ErrInvalid)

// CloseIdleConnections calls the method of Base, if it has one.
// [http.Client.CloseIdleConnections] calls it.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) formatOf(req *http.Request) *provider.Format {
	if t.Formats != nil {
		return t.Formats(req)
	}
	return FormatOf(req)
}

// redirectedFrom returns the request that was redirected, nil if req is not what
// a client sends after a redirect.
func redirectedFrom(req *http.Request) *http.Request {
	if req.Response == nil {
		return nil
	}
	return req.Response.Request
}

// redirected returns the format of a request that follows a redirect of origin:
// that of the call that was redirected, wherever it goes. The error says why it
// may not go there.
func (t *Transport) redirected(req, origin *http.Request) (*provider.Format, error) {
	first := origin
	for before := redirectedFrom(first); before != nil; before = redirectedFrom(first) {
		first = before
	}
	format := t.formatOf(first)
	switch {
	case format == nil:
		return t.formatOf(req), nil
	case isSameHost(origin.URL, req.URL):
		return format, nil
	case t.Redirect == nil:
		return nil, errors.New("it is another host, and Transport.Redirect does not allow it")
	}
	return format, t.Redirect(req)
}

// isSameHost reports whether a redirect stays with the host, and does not leave
// TLS.
func isSameHost(from, to *url.URL) bool {
	return strings.EqualFold(from.Host, to.Host) && (from.Scheme == to.Scheme || to.Scheme == "https")
}

// placeOf returns a URL without what may be a key.
func placeOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// losesBody reports whether a client follows the redirect with a GET.
func losesBody(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return true
	}
	return false
}

// newCall reads the body of a request and returns the body to be sent. It
// closes the body of the request.
func (t *Transport) newCall(
	req *http.Request, st *state.State, format *provider.Format, refused runctx.Refused,
) (*call, []byte, error) {
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 && !t.RecordOnly {
		body = []byte("{}")
	}
	asked := body
	refused.Provider = req.URL.Host + req.URL.Path + string(modelSetting.Find(body))
	sent, body, err := t.complete(context.WithValue(req.Context(), runctx.RefusedKey{}, refused),
		st, format, req.URL, body)
	if err != nil {
		return nil, nil, err
	}
	sent.streams = sent.streams || strings.HasSuffix(req.URL.Path, streamedGemini)
	limit := t.MaxBytes
	if limit == 0 {
		limit = answerBytes
	}
	c := &call{
		ctx: req.Context(), st: st, format: format, refused: refused, asked: asked, body: sent.files.name(body),
		sent: sent, limit: limit, add: st.History().AppendOutside,
	}
	if !t.RecordOnly && !isOutside(req.Context()) {
		c.add = st.History().Append
		if run := runctx.RunOf(req.Context()); run != nil && inside.Branch(run.State()) == inside.Branch(st) {
			c.run = run
		}
		if turn := turnOf(req.Context(), st); turn != nil {
			ctx := context.WithoutCancel(req.Context()) // an SDK may end it when it has what it wants
			c.add = func(r state.InferenceResult) error { return turn.Said(ctx, r) }
		}
	}
	return c, sent.files.fill(body), nil
}

// withBody returns the request with a body in place of the one that has been
// read. The base may send it again, for example on a new connection.
func withBody(req *http.Request, body []byte) *http.Request {
	req = req.Clone(req.Context())
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	return req
}

// outsideKey is the key of the contexts of OutsideConversation.
type outsideKey struct{}

// OutsideConversation returns a context for calls that are no part of the
// conversation, such as those for titles and summaries. The conversation is not
// sent with them, and their answers are recorded by
// [state.History.AppendOutside]. To record nothing at all, use a context
// without a State: state.NewContext(ctx, nil).
func OutsideConversation(ctx context.Context) context.Context {
	return context.WithValue(ctx, outsideKey{}, true)
}

func isOutside(ctx context.Context) bool { return ctx.Value(outsideKey{}) != nil }

package page_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/rightstest"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// What a provider sends, in any format, is parts of the same kinds in one order.
func TestPartsOfFormats(t *testing.T) {
	for name, test := range map[string]struct {
		format *provider.Format
		body   string
	}{
		"chat": {provider.OpenAI, `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","reasoning_content":"Hm.",
			"content":"Hi","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A"}}],
			"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`},
		"messages": {provider.Anthropic, `{"type":"message","role":"assistant","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},
			{"type":"text","text":"H"},{"type":"text","text":"i","citations":[{"type":"web_search_result_location","url":"https://a.example","title":"A"}]},
			{"type":"tool_use","id":"c","name":"f","input":{}}]}`},
		"responses": {provider.OpenAIResponses, `{"object":"response","status":"completed","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Hm."}]},
			{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[{"type":"url_citation","url":"https://a.example","title":"A"}]}]},
			{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}","status":"completed"}]}`},
		"gemini": {provider.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"Hi"},
			{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := test.format.DecodeResponse([]byte(test.body))
			require.NoError(t, err)
			r.Agent = "desk"
			m, err := workspace.Open(t.Context(), store.NewMemory(), nil)
			require.NoError(t, err)
			defer m.Close()
			require.NoError(t, m.Update(t.Context(), thread, func(w *workspace.Workspace) error { return w.State().History().Append(r) }))
			p, err := (&page.Source{Manager: m}).Read(t.Context(), thread)
			require.NoError(t, err)
			require.Len(t, p.Items, 1)
			item := p.Items[0]
			require.Equal(t, "desk", item.Agent)
			require.Equal(t, state.StopCalls, item.Stop)
			require.Equal(t, page.Part{ID: "thought", Kind: page.Thought, Text: "Hm."}, item.Parts[0])
			require.Equal(t, page.Part{ID: "text", Kind: page.Text, Text: "Hi"}, item.Parts[1])
			if name != "gemini" { // which names its sources elsewhere
				require.Equal(t, &page.Citation{URL: "https://a.example", Title: "A"}, item.Parts[2].Citation)
			}
			call := item.Parts[len(item.Parts)-1]
			require.Equal(t, "call-0", call.ID)
			require.Equal(t, "f", call.Call.Name)
			require.NotEmpty(t, call.Call.Key)
			require.Equal(t, page.CallOpen, call.Call.State)
		})
	}
}

// What a person says with files comes back as it was.
func TestContent(t *testing.T) {
	parts := []page.Part{
		{ID: "text-0", Kind: page.Text, Text: "Look:"},
		{ID: "media-1", Kind: page.MediaPart, Media: &page.Media{Type: "image/png", URL: "data:image/png;base64,AAAA"}},
		{ID: "media-2", Kind: page.MediaPart, Media: &page.Media{Type: "audio/wav", URL: "data:audio/wav;base64,AAAA"}},
		{ID: "media-3", Kind: page.MediaPart, Media: &page.Media{Type: "application/pdf", URL: "data:application/pdf;base64,AAAA", Name: "a.pdf"}},
		{ID: "media-4", Kind: page.MediaPart, Media: &page.Media{Type: "video/mp4", URL: "data:video/mp4;base64,AAAA"}},
		{ID: "media-5", Kind: page.MediaPart, Media: &page.Media{Type: "image/*", URL: "https://a.example/x"}},
	}
	said, err := page.Content(parts...)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		_, err := d.pages.Send(t.Context(), thread, page.Input{ID: "1", Content: said})
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, parts, d.read().Items[0].Parts)
	})
	for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		_, _, err := format.EncodeRequest(provider.Request{Messages: []state.Message{said}})
		require.NoError(t, err)
	}
	for _, bad := range [][]page.Part{nil, {{Kind: page.CallPart}, {}}, {{Kind: page.MediaPart, Media: &page.Media{}}}, {{Kind: page.MediaPart, Media: &page.Media{Type: "a b", URL: "https://a"}}}} {
		_, err := page.Content(bad...)
		require.ErrorIs(t, err, state.ErrInvalid)
	}
}

// callOf returns the only call of a page.
func callOf(t testing.TB, p *page.Page) (c page.Call) {
	n := 0
	for _, item := range p.Items {
		for _, part := range item.Parts {
			if part.Call != nil {
				c, n = *part.Call, n+1
			}
		}
	}
	require.Equal(t, 1, n)
	return c
}

// The state of a call is its own, with who has decided and why. No text is read to
// find it out, and that of an error is not shown.
func TestCallStates(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		decision func(key string) tool.Decision
		want     page.Call
	}{
		"open":     {text: "call:a hold", want: page.Call{State: page.CallOpen}},
		"done":     {text: "call:a result:a", want: page.Call{State: page.CallDone, Output: `"paid"`}},
		"failed":   {text: "call:a error:a", want: page.Call{State: page.CallFailed}},
		"waiting":  {text: "ask:a", want: page.Call{State: page.CallWaiting}},
		"refused":  {text: "ask:a", decision: func(key string) tool.Decision { return tool.Refuse(key, "too much") }, want: page.Call{State: page.CallRefused, Reason: "too much"}},
		"answered": {text: "ask:a", decision: func(key string) tool.Decision { return tool.AnswerWith(key, `{"done":1}`) }, want: page.Call{State: page.CallDone, Output: `{"done":1}`}},
		"answered as failed": {text: "ask:a", decision: func(key string) tool.Decision {
			d := tool.AnswerWith(key, `"no"`)
			d.Failed = true
			return d
		}, want: page.Call{State: page.CallFailed, Output: `"no"`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.send("1", test.text)
				time.Sleep(time.Second)
				synctest.Wait()
				if test.decision != nil {
					d.decide("2", test.decision)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				p := d.read()
				got := callOf(t, p)
				require.NotEmpty(t, got.Key)
				test.want.Key, test.want.Name, test.want.Input = got.Key, "pay", `{"euros":10}`
				require.Equal(t, test.want, got)
				for _, item := range p.Items {
					require.Equal(t, "1", item.Turn, "also what was said behind the decision")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.pages.Errors = true
		d.handle("1", "call:a error:a")
		require.Equal(t, state.JSON(`"no route to db-7"`), callOf(t, d.read()).Output)
	})
}

// A question stays, whatever becomes of its run, and so does the half answer of one
// that was stopped, under the same id.
func TestQuestionsStay(t *testing.T) {
	for name, test := range map[string]struct {
		text, says string
		state      page.TurnState
	}{
		"stopped before it says anything": {"hold", "", page.TurnStopped},
		"stopped in the answer":           {"think:hm text:Half text:way hold", "Halfway", page.TurnStopped},
		"failed":                          {"fail", "", page.TurnFailed},
		"failed behind an answer":         {"say:first commit fail", "first", page.TurnFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				c := d.follow(0)
				d.send("1", test.text)
				time.Sleep(time.Second)
				synctest.Wait()
				id := ""
				if n := len(c.Pending); n > 0 && c.Pending[n-1].Open {
					id = c.Pending[n-1].ID
				}
				require.NoError(t, d.pages.Stop(t.Context(), thread, "another"))
				require.NoError(t, d.pages.Stop(t.Context(), thread, "1"))
				require.NoError(t, d.pages.Stop(t.Context(), thread, ""), "nothing is under way")
				time.Sleep(time.Second)
				synctest.Wait()
				requireSame(t, *d.read(), c.Page)
				all := append(append([]*page.Item{}, c.Items...), c.Pending...)
				require.Equal(t, "1", all[0].ID)
				require.Equal(t, test.text, all[0].Parts[0].Text)
				if test.says == "" {
					require.Len(t, all, 1)
				} else {
					require.Equal(t, test.says, all[1].Parts[0].Text)
				}
				if id != "" {
					require.Equal(t, id, all[1].ID)
					require.Equal(t, state.StopInterrupted, all[1].Stop)
				}
				require.Equal(t, test.state, c.Turns[0].State)
				require.NotContains(t, c.Turns[0].Reason, "sk-123")
			})
		})
	}
}

// A message that waits is behind all else, and can be taken out.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.send("1", "text:Hello hold")
		d.send("2", "say:later")
		time.Sleep(time.Second)
		synctest.Wait()
		c := d.follow(0)
		require.Equal(t, []string{"1", "2"}, []string{c.Pending[0].ID, c.Pending[2].ID})
		require.Equal(t, page.Turn{ID: "2", State: page.TurnWaiting}, c.Turns[1])
		require.NoError(t, d.pages.Stop(t.Context(), thread, "2"))
		close(d.goOn)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, page.TurnDropped, c.Turns[0].State)
		require.Len(t, c.Items, 1)
	})
}

// A page is told that somebody has decided, also while the decision waits.
func TestDecidedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.handle("1", "ask:a")
		d.send("2", "hold")
		d.decide("3", tool.Approve)
		time.Sleep(time.Second)
		synctest.Wait()
		p := d.read()
		require.Equal(t, page.Turn{ID: "3", State: page.TurnWaiting, Of: "1", Decides: []string{callOf(t, p).Key}}, p.Turns[1])
		close(d.goOn)
	})
}

// Two answers with the same text are of their own results.
func TestEqualAnswers(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), nil)
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Update(t.Context(), thread, func(w *workspace.Workspace) error {
		for i, agent := range []string{"desk", "boss"} {
			r := state.InferenceResult{Agent: agent, Output: []state.Message{state.AssistantText("OK")}, Usage: state.Usage{Output: i + 1}}
			if err := w.State().History().Append(r); err != nil {
				return err
			}
		}
		return nil
	}))
	p, err := (&page.Source{Manager: m}).Read(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, []any{"desk", 1, "boss", 2}, []any{p.Items[0].Agent, p.Items[0].Usage.Output, p.Items[1].Agent, p.Items[1].Usage.Output})
}

// A page finds files at its addresses, also of messages that wait, and sends them back.
// What is stored names no address.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.pages.Files = "/api/files/"
		url, err := d.AddFile(t.Context(), "ann", work.File{Type: "application/pdf", Name: "bill.pdf", Data: []byte("x")})
		require.NoError(t, err)
		at := "/api/files/" + strings.TrimPrefix(url, "agent-file:")
		require.Equal(t, at, d.pages.FileAt(url))
		media := page.Media{Type: "application/pdf", Name: "bill.pdf", URL: at}
		parts := []page.Part{{Kind: page.Text, Text: "hold say:yes"}, {Kind: page.MediaPart, Media: &media}}
		content, err := d.pages.Content(parts...)
		require.NoError(t, err)
		require.Equal(t, at, media.URL, "what is passed stays")
		require.NotContains(t, string(content.Raw()), "/api/")
		for _, elsewhere := range []string{"/files/" + strings.TrimPrefix(url, "agent-file:"), at + "x", "https://e.org" + at, "/api/files/"} {
			media := page.Media{Type: "image/png", URL: elsewhere}
			same, err := d.pages.Content(page.Part{Kind: page.MediaPart, Media: &media})
			require.NoError(t, err)
			require.NotContains(t, string(same.Raw()), "agent-file:")
		}
		_, err = d.pages.Send(t.Context(), thread, page.Input{ID: "1", Content: content})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, media, *d.read().Pending[0].Parts[1].Media)
		d.goOn <- struct{}{}
		synctest.Wait()
		require.Equal(t, media, *d.read().Items[0].Parts[1].Media)
	})
}

// A page is shown what its agent may read and nothing else, whatever happens in the
// thread.
func TestPagesAreShownWhatTheirAgentMayRead(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range uint64(effort.Runs(30)) {
		w := rightstest.New(seed + i)
		synctest.Test(t, func(t *testing.T) { testRights(t, w) })
	}
}

func testRights(t *testing.T, w *rightstest.World) {
	w.Holding = make(chan struct{}) // of the bubble
	m, err := workspace.Open(t.Context(), store.NewMemory(), w.Options())
	require.NoError(t, err)
	defer m.Close()
	pages, names := &page.Source{Manager: m, Agent: w.Agent}, []string{"alpha", "bravo", "carol", "dance"}
	d := &desk{t: t, Manager: m, pages: pages}
	c := d.follow(0)
	for _, id := range []string{"first", "fails", "last"} {
		_, err := m.Submit(t.Context(), thread, w.Message(id))
		require.NoError(t, err)
	}
	for range 3 {
		time.Sleep(time.Second)
		synctest.Wait()
		<-w.Holding
		time.Sleep(time.Second)
		synctest.Wait()
		w.Check(t, "a page", shown(d.read()))
	}
	w.CheckAll(t, "the page", shown(d.read()), names...)
	w.CheckAll(t, "a page that follows", shown(c.changes), names...)
	requireSame(t, *d.read(), c.Page)
}

func shown(v any) string {
	data, err := json.Marshal(v)
	return fmt.Sprint(string(data), err)
}

// A secret is nowhere in a page.
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		require.NoError(t, d.Update(t.Context(), thread, func(w *workspace.Workspace) error { return token.Set(w.State(), "s3cret-value") }))
		c := d.follow(0)
		d.send("s3cret-value", "think:s3cret- think:value text:s3cret-value args:s3cret-value title:s3cret-value say:s3cret-value ask:s3cret-value hold fail")
		d.send("2", "say:s3cret-value")
		for range 3 {
			time.Sleep(time.Second)
			synctest.Wait() // the follower has noted what it was told
			require.NotContains(t, shown(c.changes)+shown(d.read()), "s3cret-value")
			select {
			case d.goOn <- struct{}{}:
			default:
			}
		}
	})
}

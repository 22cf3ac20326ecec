package wire_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// noise returns bytes that no request has by chance.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

var sentFiles = []work.File{
	{Type: "image/png", Name: "lamp.png", Data: noise(300_000)},
	{Type: "application/pdf", Name: "bill.pdf", Data: noise(1000)},
	{Type: "text/plain", Name: "notes.txt", Data: []byte("a \"note\"\nof < two lines, and é")},
	{Type: "audio/mpeg", Data: noise(999)},
	{Type: "video/mp4", Data: noise(998)},
}

func mediaPart(f work.File, url string) page.Part {
	return page.Part{Kind: page.MediaPart, Media: &page.Media{Type: f.Type, Name: f.Name, URL: url}}
}

func dataURL(f work.File) string {
	return "data:" + f.Type + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

// said returns what a person says with parts.
func said(t *testing.T, id, text string, parts ...page.Part) workspace.Message {
	content, err := page.Content(append(parts, page.Part{Kind: page.Text, Text: text})...)
	require.NoError(t, err)
	return workspace.Message{ID: id, Content: content}
}

// filesDesk opens a workspace whose model is that of an API.
func filesDesk(t *testing.T, db store.Store, a api, server *recorder, transport *wire.Transport, tools ...*tool.Tool) *workspace.Manager {
	client := newClient(t, transport)
	m, err := workspace.Open(t.Context(), db, &workspace.Options{
		Schema: state.MustSchema(fileCode),
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {Tools: tools, Ask: func(ctx context.Context, _ *loop.Turn) error {
			return callModel(ctx, client, server.URL+a.pathOf(false), a.body(false))
		}}}}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

var fileCode = &state.Field[string]{Name: "code", Secret: true}

// Secrets are masked in files as in messages, and the rest of a file stays.
func TestSecretsInFiles(t *testing.T) {
	const code = `tulip-4711-"window"`
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			server := newRecorder(t, a, false)
			m := filesDesk(t, store.NewMemory(), a, server, &wire.Transport{Redact: true})
			require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error {
				return fileCode.Set(w.State(), code)
			}))
			for _, typ := range []string{"text/plain", "application/pdf"} {
				f := work.File{Type: typ, Name: "notes", Data: []byte("the code is " + code + ", as agreed")}
				url, err := m.AddFile(t.Context(), "ann", f)
				require.NoError(t, err)
				handle(t, m, "ann/1", said(t, typ, "Read", mediaPart(f, url)))
				body := server.bodies[len(server.bodies)-1]
				require.NotContains(t, body, "tulip-4711")
				require.NotContains(t, body, base64.StdEncoding.EncodeToString(f.Data))
				masked := "the code is [SECRET], as agreed"
				if !strings.Contains(body, masked) {
					require.Contains(t, body, base64.StdEncoding.EncodeToString([]byte(masked)))
				}
			}
		})
	}
}

func handle(t *testing.T, m *workspace.Manager, thread string, msg workspace.Message) {
	t.Helper()
	out, err := m.Handle(t.Context(), thread, msg)
	require.NoError(t, err)
	require.Empty(t, out.Reason)
}

// A request with files by reference is the same bytes as one with data URLs, in each
// turn, also of a fork and of another process. Nothing that is kept has their data.
func TestFilesAreSentAsData(t *testing.T) {
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			db, server := store.NewMemory(), newRecorder(t, a, false)
			m := filesDesk(t, db, a, server, &wire.Transport{Cache: true, Redact: true})
			var refs, data []page.Part
			for _, f := range sentFiles {
				url, err := m.AddFile(t.Context(), "ann", f)
				require.NoError(t, err)
				refs, data = append(refs, mediaPart(f, url)), append(data, mediaPart(f, dataURL(f)))
			}
			for _, turn := range []string{"1", "2", "3"} {
				msg, want := said(t, turn, "Look"), said(t, turn, "Look")
				if turn != "3" {
					msg, want = said(t, turn, "Look", refs...), said(t, turn, "Look", data...)
				}
				handle(t, m, "bob/data", want)
				handle(t, m, "ann/1", msg)
				n := len(server.bodies)
				require.Equal(t, withoutKey(server.bodies[n-2]), withoutKey(server.bodies[n-1]))
			}
			require.Contains(t, server.bodies[5], base64.StdEncoding.EncodeToString(sentFiles[0].Data))

			require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
			m = filesDesk(t, db, a, server, &wire.Transport{Cache: true})
			handle(t, m, "ann/2", said(t, "4", "And?"))
			require.Contains(t, server.bodies[6], base64.StdEncoding.EncodeToString(sentFiles[0].Data))
			stored := 0
			for e, err := range db.List(t.Context(), "agent:", "", true) {
				require.NoError(t, err)
				if strings.Contains(e.Key, "ann") && !strings.HasPrefix(e.Key, "agent:file:ann:") {
					require.NotContains(t, string(e.Value), base64.StdEncoding.EncodeToString(sentFiles[2].Data), e.Key)
					stored += len(e.Value)
				}
			}
			require.Less(t, stored, 100_000, "what is stored does not grow by 300 kB")
			v, err := m.View(t.Context(), "ann/2")
			require.NoError(t, err)
			for _, r := range v.State().History().All() {
				require.Less(t, len(texts(r.Prompt)+texts(r.History)), 10_000)
			}
		})
	}
}

// withoutKey returns a request without what names its workspace.
func withoutKey(body string) string { return cacheKey.ReplaceAllString(body, "") }

var cacheKey = regexp.MustCompile(`"prompt_cache_key":"[^"]*"`)

// What is gone, is of another user or was never there, does not end a conversation:
// the model reads a text, and the program is told.
func TestFilesThatAreGone(t *testing.T) {
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			db, server := store.NewMemory(), newRecorder(t, a, false)
			var omitted []provider.Omission
			m := filesDesk(t, db, a, server, &wire.Transport{Omitted: func(_ context.Context, o []provider.Omission) { omitted = o }})
			url, err := m.AddFile(t.Context(), "bob", sentFiles[0])
			require.NoError(t, err)
			handle(t, m, "ann", said(t, "1", "Look", mediaPart(sentFiles[0], url), mediaPart(sentFiles[1], "agent-file:"+strings.Repeat("x", 32))))
			require.Equal(t, 2, strings.Count(server.bodies[0], "It is not sent"))
			require.Contains(t, fmt.Sprint(omitted), "file of the user")
			require.NotContains(t, server.bodies[0], url)
			_, err = m.AddFile(t.Context(), "ann", sentFiles[0])
			require.NoError(t, err)
			handle(t, m, "ann", said(t, "2", "And now?"))
			require.Contains(t, server.bodies[1], base64.StdEncoding.EncodeToString(sentFiles[0].Data), "it is there now")
			require.Equal(t, 1, strings.Count(server.bodies[1], "It is not sent"))
		})
	}
}

// A message names a file in a few bytes, as often as it likes: a request has 32 MiB of
// files, those that were said last.
func TestFilesOfARequestAreBounded(t *testing.T) {
	a := apis[0]
	server := newRecorder(t, a, false)
	m := filesDesk(t, store.NewMemory(), a, server, &wire.Transport{})
	large := work.File{Type: "image/png", Data: bytes.Repeat([]byte{1}, workspace.MaxFile)}
	url, err := m.AddFile(t.Context(), "ann", large)
	require.NoError(t, err)
	small, err := m.AddFile(t.Context(), "ann", sentFiles[1])
	require.NoError(t, err)
	parts := []page.Part{mediaPart(sentFiles[1], small)}
	for range 100 {
		parts = append(parts, mediaPart(large, url))
	}
	handle(t, m, "ann", said(t, "1", "Look", append(parts, mediaPart(sentFiles[1], small))...))
	require.Less(t, len(server.bodies[0]), 32<<20)
	require.Equal(t, 100, strings.Count(server.bodies[0], "It is not sent"))
	require.Equal(t, 1, strings.Count(server.bodies[0], "application/pdf"))
}

// A text that reads like a reference is a text, and so is what a model and a tool say.
func TestTextsAreNoFiles(t *testing.T) {
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			server := newRecorder(t, a, false)
			m := filesDesk(t, store.NewMemory(), a, server, &wire.Transport{})
			url, err := m.AddFile(t.Context(), "ann", sentFiles[0])
			require.NoError(t, err)
			call := state.ToolCall{ID: "c1", Name: "find", Input: state.JSON(fmt.Sprintf(`{"source":{"type":"url","url":%q},"url":%[1]q}`, url))}
			result := state.JSON(fmt.Sprintf(`[{"type":"image_url","image_url":{"url":%q}},{"rows":1}]`, url))
			require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
				return state.Messages.Set(w.State(), []state.Message{
					state.UserText(url), state.ToolCalls(call), state.ToolResult(call, result), state.AssistantText(url),
				})
			}))
			handle(t, m, "ann", said(t, "1", url))
			require.NotContains(t, server.bodies[0], "base64")
			require.Less(t, len(server.bodies[0]), 10_000)
			require.GreaterOrEqual(t, strings.Count(server.bodies[0], url), 5)
		})
	}
}

// A tool returns a picture by reference.
func TestFilesInResults(t *testing.T) {
	for _, a := range apis[1:] {
		t.Run(a.format.String(), func(t *testing.T) {
			server := newRecorder(t, a, false)
			m := filesDesk(t, store.NewMemory(), a, server, &wire.Transport{})
			url, err := m.AddFile(t.Context(), "ann", sentFiles[0])
			require.NoError(t, err)
			call := state.ToolCall{ID: "c1", Name: "draw", Input: "{}"}
			require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
				return state.Messages.Set(w.State(), []state.Message{
					state.UserText("Draw"), state.ToolCalls(call),
					state.ToolResult(call, state.JSON(fmt.Sprintf(`[{"type":"image","mimeType":"image/png","data":%q}]`, url))),
				})
			}))
			handle(t, m, "ann", said(t, "1", "Well?"))
			require.Equal(t, 1, strings.Count(server.bodies[0], base64.StdEncoding.EncodeToString(sentFiles[0].Data)))
		})
	}
}

// A provider refuses a picture by its place: it is withheld as one of a data URL is.
func TestFilesThatAreRefused(t *testing.T) {
	for _, a := range apis {
		t.Run(a.format.String(), func(t *testing.T) {
			server := newRecorder(t, a, false)
			data := base64.StdEncoding.EncodeToString(sentFiles[0].Data)
			provider := &strict{next: http.DefaultTransport, refuse: naming(a, data)}
			m := filesDesk(t, store.NewMemory(), a, server, &wire.Transport{Base: provider})
			url, err := m.AddFile(t.Context(), "ann", sentFiles[0])
			require.NoError(t, err)
			other, err := m.AddFile(t.Context(), "ann", sentFiles[1])
			require.NoError(t, err)
			handle(t, m, "ann", said(t, "1", "Look", mediaPart(sentFiles[0], url), mediaPart(sentFiles[1], other)))
			require.Equal(t, 1, provider.count)
			require.NotContains(t, provider.last(), data)
			require.Contains(t, provider.last(), base64.StdEncoding.EncodeToString(sentFiles[1].Data), "the other one is sent")
			handle(t, m, "ann", said(t, "2", "And?"))
			require.Equal(t, 1, provider.count, "it stays withheld")
		})
	}
}

// A file in a store that does not answer is not taken for one that is gone.
func TestFilesOfAStoreThatIsAway(t *testing.T) {
	a := apis[0]
	server := newRecorder(t, a, false)
	away := 3
	db := fakestore.New(store.NewMemory(), func(_ context.Context, c fakestore.Call, do func() error) error {
		if c.Op == "Get" && len(c.Keys) == 1 && strings.HasPrefix(c.Keys[0], "agent:file:") && away > 0 {
			away--
			return &store.Error{Op: "get", Err: context.DeadlineExceeded}
		}
		return do()
	})
	m := filesDesk(t, db, a, server, &wire.Transport{})
	url, err := m.AddFile(t.Context(), "ann", sentFiles[0])
	require.NoError(t, err)
	handle(t, m, "ann", said(t, "1", "Look", mediaPart(sentFiles[0], url)))
	require.Zero(t, away)
	require.Contains(t, server.bodies[0], base64.StdEncoding.EncodeToString(sentFiles[0].Data))
}

// Nothing but the store holds the data when an answer has come.
func TestNothingKeepsTheDataOfFiles(t *testing.T) {
	a, size := apis[2], 0
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		size = int(n)
		a.answer(w, false)
	})
	m := filesDesk(t, store.NewMemory(), a, &recorder{Server: server}, &wire.Transport{})
	url, err := m.AddFile(t.Context(), "ann", work.File{Type: "image/png", Data: noise(workspace.MaxFile)})
	require.NoError(t, err)
	heap := func() int {
		runtime.GC()
		runtime.GC() // and what pools hold
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	handle(t, m, "ann", said(t, "0", "Hello"))
	before := heap()
	handle(t, m, "ann", said(t, "1", "Look", mediaPart(work.File{Type: "image/png"}, url)))
	require.Greater(t, size, workspace.MaxFile*4/3)
	require.Less(t, heap()-before, 4<<20)
}

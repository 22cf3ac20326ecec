package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	run    = `{"traj":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}`
	broken = `{"traj":[{"role":"user"`
	other  = `{"vendor":"v","events":[{"direction":"sent","data":{}}]}`
	frames = `{"exchanges":[{"api":"mcp_jsonrpc","status":200,"request":{},"stream":[]},{"api":"mcp_jsonrpc","status":200,"request":{},"stream":[]}]}`
	call   = `{"exchanges":[{"api":"openai_chat","status":200,"request":{"model":"m","messages":[{"role":"user","content":"hi"}]},"response":{"choices":[{"message":{"role":"assistant","content":"hello"}}]}}]}`
	// The provider took a result that answers no call.
	orphan    = `{"exchanges":[{"api":"openai_chat","status":200,"request":{"messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"1","content":"a"}]},"response":{"choices":[]}}]}`
	refusal   = `{"exchanges":[{"api":"openai_chat","vendor":"V","status":400,"request":{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":"a"}]},"response":{"error":{"code":"400","message":"no"}}}]}`
	cut       = `[{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}]`
	commented = `{"exchanges":[{"api":"openai_chat","status":200,"request":{"messages":[{"role":"user","content":"hi"}]},"stream":": PROCESSING\n\n: AGAIN\ndata: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"}]}`
	answered  = `{"src":"a","url":"https://api.openai.com/v1/chat/completions","status":200,"response":{"id":"r","choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}}`
	nothing   = `{"exchanges":[{"api":"anthropic_messages","status":200,"request":{"messages":[{"role":"user","content":"hi"}]},"stream":[{"event":"x"}]}]}`
)

func TestReplay(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string // in a folder
		given []string          // the files to name, or the folder if there are none
		ok    bool
		out   []string
		not   []string
	}{
		{"a folder of runs", map[string]string{"a.json": run, "b.traj": "[" + run + "," + run + "]"}, nil, true,
			[]string{"a.json", "total of 2 files", "verified", "ok", "τ-bench"}, []string{"not a conversation", "failure", "FAILED"}},
		{"kinds", map[string]string{"a.json": run, "b.json": call, "c.json": call}, nil, true,
			[]string{"OpenAI chat exchange", "τ-bench", "2/2", "3/3"}, []string{"failure", "FAILED"}},
		{"other files in a folder", map[string]string{"a.json": run, "b.json": other, "c.md": "", "d.json": frames}, nil, true,
			[]string{"1  a realtime session", "2  MCP frames", "1  a file with another extension", "b.json: a realtime session", "total of 1 file\n"}, []string{"failure"}},
		{"only other files in a folder", map[string]string{"b.json": other}, nil, false,
			[]string{"1  a realtime session", "no conversation was found"}, []string{"total"}},
		{"another file that is named", map[string]string{"a.json": run, "b.json": frames}, []string{"a.json", "b.json"}, false,
			[]string{"total of 1 file", "1 failure", "b.json: not a trace: MCP frames\n"}, []string{"not a conversation"}},
		{"a broken file in a folder", map[string]string{"a.json": broken, "b.json": run}, nil, false,
			[]string{"total of 1 file", "1 failure", "a.json: $.traj[0].role: unexpected end of JSON input (byte 23)"}, []string{"not a conversation"}},
		{"an array with an element that is not a run", map[string]string{"a.json": "[" + run + "," + other + ",7]"}, nil, false,
			[]string{"FAILED", "2 failures", "$[1]: not a trace", "$[2]: not a trace"}, nil},
		{"a false finding", map[string]string{"a.json": call, "b.json": orphan}, nil, false,
			[]string{"FAILED", "b.json: $.exchanges[0].request: as it was sent: a false finding: message 1: orphan-result"}, []string{"a.json: $"}},
		{"a refusal", map[string]string{"a.json": refusal}, nil, true,
			[]string{"1/1", "requests that a provider refused:\n", "a.json: $.exchanges[0].request (V, m): 400 no (found: orphan-result)", "(V m)\n", "V: m 1"}, []string{"failure", "FAILED"}},
		{"a stream that broke off", map[string]string{"a.json": call, "b.json": cut}, nil, true,
			[]string{"streams that are not whole:\n", "b.json: $: it broke off"}, []string{"failure", "FAILED"}},
		{"a stream with comments", map[string]string{"a.json": commented}, nil, true,
			[]string{"1/1"}, []string{"failure", "FAILED"}},
		{"lines that have only an answer", map[string]string{"a.jsonl": answered + "\n" + answered + "\n"}, nil, true,
			[]string{"OpenAI chat", "total of 1 file"}, []string{"an object with", "failure", "FAILED"}},
		{"a stream of nothing", map[string]string{"a.json": nothing}, nil, false,
			[]string{"FAILED", "none of its 1 events is one of Anthropic"}, nil},
		{"nothing", nil, nil, false, []string{"no conversation was found"}, nil},
		{"a file that is not there", nil, []string{"none.json"}, false, []string{"1 failure", "none.json"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			paths := []string{dir}
			if test.given != nil {
				paths = nil
			}
			for _, name := range test.given {
				paths = append(paths, filepath.Join(dir, name))
			}
			var out, progress bytes.Buffer
			report := report{verify: true, perFile: true}
			report.replay(paths, &progress)
			report.print(&out)
			require.Equal(t, test.ok, report.ok(), out.String())
			for _, want := range test.out {
				require.Contains(t, out.String(), want)
			}
			for _, no := range test.not {
				require.NotContains(t, out.String(), no)
			}
			require.Empty(t, progress.String(), "short runs show no progress")
		})
	}
}

// Without flags the report does not grow with the number of files, and says only
// what was done.
func TestShortReport(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": run, "b.json": call, "c.json": other, "d.json": orphan} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var out bytes.Buffer
	var report report
	report.replay([]string{dir}, &out)
	report.print(&out)
	require.True(t, report.ok(), "what a provider accepted is checked with -verify only")
	require.Contains(t, out.String(), "a realtime session")
	require.NotContains(t, out.String(), ".json")
	require.NotContains(t, out.String(), "verified")
}

// Without flags, too, the report names what is worth a look, but not
// everything.
func TestNotesAreNamedAndBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range shownNotes + 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.json", i)), []byte(cut), 0o600))
	}
	for _, perFile := range []bool{false, true} {
		var out bytes.Buffer
		report := report{perFile: perFile}
		report.replay([]string{dir}, io.Discard)
		report.print(&out)
		require.Contains(t, out.String(), "00.json: $: it broke off")
		require.Equal(t, perFile, strings.Contains(out.String(), "14.json: $"))
		require.Equal(t, !perFile, strings.Contains(out.String(), "… and 3 more, which -files lists"))
	}
}

// The help is enough to write an envelope.
func TestUsageDescribesTheEnvelope(t *testing.T) {
	var out bytes.Buffer
	usage(&out)
	for _, want := range []string{
		"exchanges", "api", "url", "vendor", "status", "request", "response", "stream", "JSONL", "server-sent events", ".traj",
		"openai_chat", "openai_responses", "anthropic_messages", "gemini_generateContent",
	} {
		require.Contains(t, out.String(), want)
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, 2)
	p.file(0, "a.json")
	p.next = time.Time{} // it has been at it for long
	p.step(7)
	p.step(8)
	p.end()
	require.Equal(t, "1/2 \"a.json\", step 7\n", b.String())

	b.Reset()
	p.terminal, p.next = true, time.Time{}
	p.step(9)
	p.end()
	require.Equal(t, "\r\x1b[K1/2 \"a.json\", step 9\r\x1b[K", b.String())
}

func TestNamesAreShownOnOneLine(t *testing.T) {
	require.Equal(t, "dir/task 1.json", shown("dir/task 1.json"))
	require.Equal(t, `"a\nb\x1b"`, shown("a\nb\x1b"))
}

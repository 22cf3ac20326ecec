package traces_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/traces"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

var formatsOfAPIs = map[string]*provider.Format{
	"openai_chat": provider.OpenAI, "openai_responses": provider.OpenAIResponses,
	"anthropic_messages": provider.Anthropic, "gemini_generateContent": provider.Gemini,
}

// asked is a recorded request with its answer.
type asked struct {
	file    string
	request provider.Request
	answer  state.InferenceResult
}

// readAsked returns the requests of the recordings for which the provider has
// reported tokens, by conversation.
func readAsked() (files [][]asked) {
	for _, folder := range recordingFolders() {
		for _, file := range traces.Find([]string{folder}) {
			data, err := os.ReadFile(file.Path)
			if file.Skip != "" || err != nil {
				continue
			}
			var recording struct {
				Exchanges []struct {
					API               string
					Request, Response json.RawMessage
					Stream            []struct{ Data json.RawMessage }
				}
			}
			if json.Unmarshal(data, &recording) != nil {
				continue
			}
			var all []asked
			for _, x := range recording.Exchanges {
				format := formatsOfAPIs[x.API]
				if format == nil {
					continue
				}
				request, err := format.DecodeRequest(x.Request)
				if err != nil || request.Continued() {
					continue
				}
				answer, err := format.DecodeResponse(x.Response)
				if len(x.Stream) > 0 {
					stream := format.Stream()
					for _, event := range x.Stream {
						_ = stream.Event(event.Data) // an answer that is not whole has no result
					}
					answer, err = stream.Result()
				}
				if err == nil && answer.Usage.Input > 0 {
					all = append(all, asked{filepath.Base(file.Path), request, answer})
				}
			}
			files = append(files, all)
		}
	}
	return files
}

// TestTokensOfRecordings says how far what a window takes a request for is from
// what the provider has reported, for requests of more than 1 000 tokens: without
// a report, and with that of the request before. What the provider reports for an
// answer with tools of its own is a sum over requests that it has made itself, and
// nothing to compare with.
func TestTokensOfRecordings(t *testing.T) {
	var alone, reported [2]estimates
	for _, file := range readAsked() {
		for i, x := range file {
			is := x.answer.Usage.Input
			if is <= 1000 || servesTools(x.answer) {
				continue
			}
			half := halfOf(x.file)
			alone[half] = append(alone[half], estimate{x.file, tokensAlone(x), is})
			if before := before(file[:i], x); len(before) > 0 {
				reported[half] = append(reported[half], estimate{x.file, tokensBehind(t, before, x), is})
			}
		}
	}
	both := slices.Concat(reported[0], reported[1])
	if len(both) == 0 {
		t.Skip("no recording has two requests of one conversation with more than 1 000 tokens: set STATE_TRACES")
	}
	t.Logf("without a report: %v", slices.Concat(alone[0], alone[1]))
	t.Logf("with a report: %v", both)
	t.Logf("with a report, in the half that the weights of words were not fitted to: %v", reported[1])
	for _, x := range both {
		if x.relative() > 0.05 {
			t.Logf("%d of %s taken for %d", x.is, x.file, x.taken)
		}
	}
	require.Less(t, both.quantile(0.5), 0.02)
	require.GreaterOrEqual(t, both.within(0.05), 0.9)
}

// halfOf returns the half of the conversations that a file is in.
func halfOf(file string) int {
	h := fnv.New32a()
	h.Write([]byte(file))
	return int(h.Sum32()>>7) & 1
}

// servesTools reports whether the provider has called tools of its own.
func servesTools(answer state.InferenceResult) bool {
	return slices.ContainsFunc(answer.Output, func(m state.Message) bool {
		_, unknown := m.(state.UnknownMessage)
		raw := string(m.Raw())
		return unknown && strings.HasSuffix(m.Type(), "_call") ||
			strings.Contains(raw, `"server_tool_use"`) || strings.Contains(raw, `"mcp_tool_use"`) || strings.Contains(raw, `"executableCode"`)
	})
}

// before returns the requests that another one continues, in their order: each with
// its answer behind it as it was, and the same tools.
func before(earlier []asked, x asked) []asked {
	for i := len(earlier) - 1; i >= 0; i-- {
		b := earlier[i]
		n := len(b.request.Messages)
		if n < len(x.request.Messages) && slices.EqualFunc(b.request.Messages, x.request.Messages[:n], state.Message.Equal) &&
			slices.EqualFunc(b.request.Tools, x.request.Tools, func(a, b provider.Tool) bool { return a.Name == b.Name }) &&
			answerLen(b.answer, x.request.Messages[n:]) > 0 {
			return append(before(earlier[:i], b), b)
		}
	}
	return nil
}

// answerLen returns how many messages the answer has at the beginning of what came
// since, 0 if it is not there as it was.
func answerLen(answer state.InferenceResult, since []state.Message) int {
	n := 0
	for n < len(since) && since[n].Role() == "assistant" {
		if !slices.ContainsFunc(answer.Output, func(m state.Message) bool { return said(m) == said(since[n]) }) {
			return 0
		}
		n++
	}
	return n
}

// said returns what a message says, without what a program may have left out of it.
func said(m state.Message) string {
	if calls, ok := m.(state.ToolCallMessage); ok {
		said := ""
		for _, c := range calls.Calls() {
			said += fmt.Sprintln(c.Name)
		}
		return said
	}
	if text, ok := m.(state.TextMessage); ok {
		return text.Text()
	}
	return string(m.Raw())
}

// besides returns for how many tokens package wire takes what a request has
// besides messages.
func besides(request provider.Request) int {
	tokens := transcript.EstimateTokens(state.UserText(string(request.Settings)))
	for _, tool := range request.Tools {
		tokens += transcript.EstimateTokens(state.UserText(fmt.Sprintln(tool.Name, tool.Description, tool.Schema)))
	}
	return tokens
}

// tokensAlone returns for how many tokens a window takes a request of which nothing
// has been reported.
func tokensAlone(x asked) int {
	tokens := besides(x.request)
	for _, m := range x.request.Messages {
		tokens += transcript.EstimateTokens(m)
	}
	return tokens
}

// tokensBehind returns for how many tokens a window takes a request, if it has been
// told of those before: the smallest Max with which it need not move.
func tokensBehind(t *testing.T, before []asked, x asked) int {
	st := state.New(nil)
	var last asked
	for _, next := range append(before, x) {
		if last.request.Messages != nil {
			require.NoError(t, st.History().Append(last.answer))
		}
		since := next.request.Messages[len(last.request.Messages):]
		require.NoError(t, state.Messages.Set(st, since[answerLen(last.answer, since):]))
		last = next
	}
	extra := besides(x.request)
	least, most := 1, 1<<20
	for least < most {
		max := (least + most) / 2
		if _, err := (&transcript.Window{Target: max, Keep: 1}).Messages(t.Context(), st.Snapshot(), extra); err != nil {
			least = max + 1
		} else {
			most = max
		}
	}
	return least
}

// estimate is what a request was taken for, and what it was.
type estimate struct {
	file      string
	taken, is int
}

func (e estimate) relative() float64 { return math.Abs(float64(e.taken-e.is)) / float64(e.is) }

type estimates []estimate

// quantile returns the error that a part of the requests does not exceed.
func (e estimates) quantile(part float64) float64 {
	errs := make([]float64, len(e))
	for i, x := range e {
		errs[i] = x.relative()
	}
	slices.Sort(errs)
	return errs[min(int(part*float64(len(errs))), len(errs)-1)]
}

// within returns which part of the requests has no larger error.
func (e estimates) within(limit float64) float64 {
	n := 0
	for _, x := range e {
		if x.relative() <= limit {
			n++
		}
	}
	return float64(n) / float64(len(e))
}

func (e estimates) String() string {
	return fmt.Sprintf("%d requests, %.0f %% within 5 %%, half within %.1f %%, 95 %% within %.1f %%",
		len(e), 100*e.within(0.05), 100*e.quantile(0.5), 100*e.quantile(0.95))
}

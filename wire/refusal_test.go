package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// strict is a provider that refuses requests.
type strict struct {
	next   http.RoundTripper
	refuse func(body string) (code int, text string) // 0 if it is accepted
	bodies []string
	count  int // of the refused ones
}

func (s *strict) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	body := string(raw)
	s.bodies = append(s.bodies, body)
	if code, text := s.refuse(body); code > 0 {
		s.count++
		return status(code, text, "Content-Type", "application/json")(req)
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(strings.NewReader(body))
	return s.next.RoundTrip(req)
}

// last returns the request that was sent last.
func (s *strict) last() string { return s.bodies[len(s.bodies)-1] }

// refusing refuses requests with one of the words.
func refusing(code int, text string, words ...string) func(string) (int, string) {
	return func(body string) (int, string) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(body, w) }) {
			return code, text
		}
		return 0, ""
	}
}

// naming refuses requests with a text in the words of an API: it names the part that
// holds it.
func naming(a api, text string) func(string) (int, string) {
	return func(body string) (int, string) {
		var value map[string]any
		if json.Unmarshal([]byte(body), &value) != nil {
			return 500, ""
		}
		for _, list := range []string{"messages", "input", "contents"} {
			if path, ok := pathOf(value[list], text); ok {
				return 400, namedIn[a.format](list, path)
			}
		}
		return 0, ""
	}
}

// pathOf returns the names and indexes that lead to the text.
func pathOf(value any, text string) (path []any, ok bool) {
	switch value := value.(type) {
	case string:
		return nil, strings.Contains(value, text)
	case []any:
		for i, v := range value {
			if path, ok := pathOf(v, text); ok {
				return append([]any{i}, path...), true
			}
		}
	case map[string]any:
		for name, v := range value {
			if path, ok := pathOf(v, text); ok {
				return append([]any{name}, path...), true
			}
		}
	}
	return nil, false
}

// namedIn has how an API says that a part is refused, and not what is wrong with it.
var namedIn = map[*provider.Format]func(list string, path []any) string{
	provider.OpenAI:          bracketed(`{"error":{"message":"Invalid value.","type":"invalid_request_error","param":%q,"code":"invalid_value"}}`),
	provider.OpenAIResponses: bracketed(`{"error":{"message":"Invalid value.","type":"invalid_request_error","param":%q,"code":"invalid_value"}}`),
	provider.Anthropic: func(list string, path []any) string {
		dotted := list
		for _, name := range path {
			dotted += fmt.Sprint(".", name)
			if name == "source" {
				dotted = strings.TrimSuffix(dotted, ".source") + ".image.source.base64"
			}
		}
		return fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"%s: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}`, dotted)
	},
	provider.Gemini: bracketed(`{"error":{"code":400,"message":"Invalid value at '%s' (TYPE_BYTES)","status":"INVALID_ARGUMENT"}}`),
}

func bracketed(text string) func(string, []any) string {
	return func(list string, path []any) string {
		for _, name := range path {
			if i, ok := name.(int); ok {
				list += fmt.Sprintf("[%d]", i)
			} else {
				list += "." + strings.ReplaceAll(name.(string), "inlineData", "inline_data")
			}
		}
		return strings.Replace(strings.Replace(text, "%q", `"`+list+`"`, 1), "%s", list, 1)
	}
}

// unnamed has an error of the table for a picture, and one for any content.
var unnamed = map[*provider.Format][2]string{
	provider.OpenAI: {
		`{"error":{"message":"You uploaded an unsupported image.","type":"invalid_request_error","param":null,"code":"image_parse_error"}}`,
		`{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400}}`,
	},
	provider.OpenAIResponses: {
		`{"error":{"message":"x","type":"invalid_request_error","param":null,"code":"invalid_image_format"}}`,
		`{"error":{"message":"Invalid prompt","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}`,
	},
	provider.Anthropic: {
		`{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`,
	},
	provider.Gemini: {
		`{"error":{"code":400,"message":"Unable to process input image. Please retry","status":"INVALID_ARGUMENT"}}`,
		`{"error":{"code":400,"message":"Provided image is not valid.","status":"INVALID_ARGUMENT"}}`,
	},
}

const schemaError = `{"type":"error","error":{"type":"invalid_request_error","param":"tools[0].function.parameters","message":"tools.0.custom.input_schema: JSON schema is invalid"}}`

const (
	badPicture  = "QkFEcGljdHVyZQ=="
	goodPicture = "R09PRHBpY3R1cmU="
	noMedium    = "[A picture or file stood here. It was withheld, because it was refused.]"
	noResult    = "[The call was made. Its result was withheld, because it was refused.]"
	noWords     = "[What was said here was withheld, because it was refused.]"
)

// picture returns a message of the user with a text and a picture.
func picture(text, data string) state.Message {
	m, err := state.Parts("user", state.JSON(fmt.Sprintf(`{"type":"text","text":%q}`, text)),
		state.JSON(`{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}}`))
	if err != nil {
		panic(err)
	}
	return m
}

// shooting is a tool that returns a text, a good picture, and one that is refused.
func shooting(text string) *tool.Tool {
	return tool.Must(tool.New("shoot", "Takes a picture.", func(context.Context, struct{}) (state.JSON, error) {
		return state.JSON(fmt.Sprintf(`[{"type":"text","text":%q},{"type":"image","mimeType":"image/png","data":%q},{"type":"image","mimeType":"image/png","data":%q}]`, text, goodPicture, badPicture)), nil
	}))
}

// telling is a tool that returns a text.
func telling(text string) *tool.Tool {
	return tool.Must(tool.New("tell", "Tells.", func(context.Context, struct{}) (string, error) { return text, nil }))
}

// refusedCase is an agent that talks to a strict provider.
type refusedCase struct {
	*strict
	st   *state.State
	loop *loop.Loop
}

func newRefusedCase(t *testing.T, a api, streams bool, tools []*tool.Tool, replies ...statetest.Reply) *refusedCase {
	c := &refusedCase{strict: &strict{next: statetest.NewModel(t, a.format, replies...)}, st: state.New(nil)}
	c.refuse = func(string) (int, string) { return 0, "" }
	c.loop = c.loopOf(a, streams, &wire.Transport{Base: c.strict}, tools)
	return c
}

func (c *refusedCase) loopOf(a api, streams bool, transport *wire.Transport, tools []*tool.Tool) *loop.Loop {
	path, body := a.path, fmt.Sprintf(a.request, "")
	if streams {
		path, body = a.stream, fmt.Sprintf(a.request, ` "stream":true,`)
	}
	return &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asksOfTransport(transport, path, body), Tools: tools}}}
}

func (c *refusedCase) say(t *testing.T, m state.Message) error {
	require.NoError(t, state.Messages.Set(c.st, []state.Message{m}))
	_, err := c.loop.Run(t.Context(), c.st)
	return err
}

// marks returns the indexes of the messages of which something is withheld.
func (c *refusedCase) marks() (marked []int) {
	conversation := state.Messages.GetOr(c.st, nil)
	for i, m := range transcript.Withhold(context.Background(), c.st, conversation) {
		if m != conversation[i] {
			marked = append(marked, i)
		}
	}
	return marked
}

// listOf returns the list of a request that has the conversation.
func listOf(t *testing.T, body string) string {
	var lists struct{ Messages, Input, Contents json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(body), &lists))
	return string(slices.Concat(lists.Messages, lists.Input, lists.Contents))
}

// A picture that the provider refuses does not end the conversation: the model reads
// a text in its place, then and in each later request.
func TestRefusedPictures(t *testing.T) {
	for _, a := range apis {
		for _, streams := range []bool{false, true} {
			for name, refuse := range map[string]func(string) (int, string){
				"named": naming(a, badPicture), "listed": refusing(400, unnamed[a.format][0], badPicture),
			} {
				t.Run(fmt.Sprintf("%s/streams=%v/%s", a.format, streams, name), func(t *testing.T) {
					c := newRefusedCase(t, a, streams, nil, statetest.Say("One."), statetest.Say("Two."), statetest.Say("Three."), statetest.Say("Four.").Times(-1))
					require.NoError(t, c.say(t, picture("Before.", goodPicture)))
					c.refuse = refuse
					require.NoError(t, c.say(t, picture("What is it?", badPicture)))
					require.Equal(t, 1, c.count)
					first := c.last()
					require.Contains(t, first, noMedium)
					require.Contains(t, first, "What is it?")
					require.Contains(t, first, goodPicture, "what was accepted stays")
					require.Equal(t, []int{2}, c.marks())
					require.Contains(t, string(state.Messages.GetOr(c.st, nil)[2].Raw()), badPicture, "the conversation has the original")

					require.NoError(t, c.say(t, state.UserText("And now?")))
					require.Equal(t, 1, c.count, "it is not sent again")
					require.True(t, strings.HasPrefix(listOf(t, c.last()), strings.TrimSuffix(listOf(t, first), "]")), "the bytes stay")
					require.Equal(t, 1, strings.Count(c.last(), noMedium))
					require.NoError(t, transcript.ShowWithheld(c.st))
					require.Empty(t, c.marks())
					c.refuse = func(string) (int, string) { return 0, "" }
					require.NoError(t, c.say(t, state.UserText("Look again.")))
					require.Contains(t, c.last(), badPicture)
				})
			}
		}
	}
}

// The same for what a tool returns. Chat Completions has no pictures there.
func TestRefusedResults(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streams bool) {
		for name, tc := range map[string]struct {
			tool        *tool.Tool
			refuse      func(string) (int, string)
			count       int
			has, hasNot []string
		}{
			"one picture is named": {
				shooting("A view."), naming(a, badPicture), 1, []string{noMedium, "A view.", goodPicture}, []string{badPicture, noResult},
			},
			"a picture is listed": {
				shooting("A view."), refusing(400, unnamed[a.format][0], badPicture), 1, []string{noMedium, "A view."}, []string{badPicture, goodPicture, noResult},
			},
			"a word is listed": {
				shooting("Foul words."), refusing(400, unnamed[a.format][1], "Foul"), 2, []string{noResult}, []string{"Foul", badPicture},
			},
			"a text is named": {
				telling("Foul words."), naming(a, "Foul"), 1, []string{noResult}, []string{"Foul"},
			},
			"a text is listed": {
				telling("Foul words."), refusing(400, unnamed[a.format][1], "Foul"), 1, []string{noResult}, []string{"Foul"},
			},
		} {
			if a.format == provider.OpenAI && strings.Contains(name, "picture") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				if a.format == provider.OpenAI && tc.count == 2 {
					tc.has = nil // the first time in vain, for pictures that are not sent
				}
				c := newRefusedCase(t, a, streams, []*tool.Tool{tc.tool}, statetest.Call(tc.tool.Name(), `{}`), statetest.Say("Done.").Times(-1))
				c.refuse = tc.refuse
				require.NoError(t, c.say(t, state.UserText("Go.")))
				require.Equal(t, tc.count, c.count)
				for range 2 {
					for _, text := range tc.has {
						require.Contains(t, c.last(), text)
					}
					for _, text := range tc.hasNot {
						require.NotContains(t, c.last(), text)
					}
					require.Equal(t, []int{2}, c.marks())
					require.NoError(t, c.say(t, state.UserText("Go on.")))
				}
				require.Equal(t, tc.count, c.count)
				prefix := c.bodies[len(c.bodies)-2]
				require.Equal(t, strings.Count(prefix, noResult), strings.Count(c.last(), noResult))
			})
		}
	})
}

// Whatever a provider refuses, what the user says last, instructions and schemas
// stay. When that does not help, nothing is withheld, and the next message of the
// user works.
func TestRefusedForGood(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streams bool) {
		for name, tc := range map[string]struct {
			refuse func(string) (int, string)
			sent   int // requests for one message
			next   bool
		}{
			"a word of the user, named":  {naming(a, "Foul"), 1, true},
			"a word of the user, listed": {refusing(400, unnamed[a.format][1], "Foul"), 3, true},
			"everything":                 {refusing(400, unnamed[a.format][1], ""), 3, false},
			"a schema":                   {refusing(400, schemaError, ""), 1, false},
			"an instruction":             {refusing(400, unnamed[a.format][1], "Be kind."), 3, false},
			"another status":             {refusing(403, unnamed[a.format][1], ""), 1, false},
			"another error":              {refusing(400, `{"error":{"message":"no"}}`, ""), 1, false},
		} {
			t.Run(name, func(t *testing.T) {
				c := newRefusedCase(t, a, streams, []*tool.Tool{telling("told")}, statetest.Call("tell", `{}`), statetest.Say("One."), statetest.Say("Two.").Times(-1))
				require.NoError(t, c.say(t, state.UserText("Before.")))
				before := len(c.bodies)
				c.refuse = tc.refuse
				require.Error(t, c.say(t, picture("Foul words.", goodPicture)))
				require.LessOrEqual(t, len(c.bodies)-before, tc.sent)
				for _, body := range c.bodies[before:] {
					require.Contains(t, body, "Foul words.")
					require.Contains(t, body, "Be kind.")
				}
				require.Empty(t, c.marks(), "nothing is withheld")

				err := c.say(t, state.UserText("Sorry."))
				if !tc.next {
					require.Error(t, err)
					require.Empty(t, c.marks())
					return
				}
				require.NoError(t, err)
				require.Contains(t, c.last(), noWords)
				require.Contains(t, c.last(), "Sorry.")
				require.Contains(t, c.last(), "told")
				require.Equal(t, []int{4}, c.marks())
				count := c.count
				require.NoError(t, c.say(t, state.UserText("More.")))
				require.Equal(t, count, c.count)
				require.Equal(t, 1, strings.Count(c.last(), noWords))
			})
		}
	})
}

// What is withheld counts for one model of one provider, and NoWithhold and RecordOnly
// leave the refusal to the program.
func TestRefusedByOneProvider(t *testing.T) {
	a := apis[2]
	c := newRefusedCase(t, a, false, nil, statetest.Say("One."), statetest.Say("Two.").Times(-1))
	c.refuse = refusing(400, unnamed[a.format][0], badPicture)
	without := c.loopOf(a, false, &wire.Transport{Base: c.strict, NoWithhold: true}, nil)
	require.NoError(t, state.Messages.Set(c.st, []state.Message{picture("What is it?", badPicture)}))
	_, err := without.Run(t.Context(), c.st)
	require.Error(t, err)
	require.Len(t, c.bodies, 1)
	_, err = c.loop.Run(t.Context(), c.st)
	require.NoError(t, err)
	require.NotContains(t, c.last(), badPicture)

	c.refuse = func(string) (int, string) { return 0, "" }
	require.NoError(t, c.say(t, state.UserText("And?")))
	require.NotContains(t, c.last(), badPicture)
	a.request = strings.Replace(a.request, `"m"`, `"other"`, 1)
	require.NoError(t, state.Messages.Set(c.st, []state.Message{state.UserText("And you?")}))
	_, err = c.loopOf(a, false, &wire.Transport{Base: c.strict}, nil).Run(t.Context(), c.st)
	require.NoError(t, err)
	require.Contains(t, c.last(), badPicture, "another model")
	require.Equal(t, []int{0}, c.marks())
	require.NoError(t, c.say(t, state.UserText("You again.")))
	require.NotContains(t, c.last(), badPicture)

	// Another provider refuses what this one has accepted.
	openAI := apis[0]
	other := &strict{next: statetest.NewModel(t, openAI.format, statetest.Say("Three.")), refuse: refusing(404, `{"error":{"message":"No endpoints found that support image input","code":404}}`, badPicture)}
	require.NoError(t, state.Messages.Set(c.st, []state.Message{state.UserText("And they?")}))
	_, err = c.loopOf(openAI, false, &wire.Transport{Base: other}, nil).Run(t.Context(), c.st)
	require.NoError(t, err)
	require.Equal(t, 1, other.count)
	require.Contains(t, other.last(), noMedium)
	require.NotContains(t, other.last(), noWords)
}

// The window counts what is shown, and a summary is made of that.
func TestRefusedBehindWindows(t *testing.T) {
	a, seen := apis[2], ""
	c := newRefusedCase(t, a, false, nil, statetest.Say("One."), statetest.Say("Two.").Times(-1))
	window := &transcript.Window{Target: 700, Keep: 300, Summarize: func(_ context.Context, p transcript.Past) (string, error) {
		for _, m := range slices.Concat(p.Messages, p.Shown()) {
			seen += string(m.Raw())
		}
		return "The user has shown a picture.", nil
	}}
	c.loop = c.loopOf(a, false, &wire.Transport{Base: c.strict, Window: window}, nil)
	require.NoError(t, c.say(t, state.UserText("Hello.")))
	c.refuse = refusing(400, unnamed[a.format][0], badPicture)
	require.ErrorIs(t, c.say(t, picture("What is it?", badPicture)), transcript.ErrWindow, "a picture has 1100 tokens")
	window.Target, window.Keep = 3000, 500
	_, err := c.loop.Run(t.Context(), c.st)
	require.NoError(t, err)
	require.Contains(t, c.last(), noMedium)
	window.Target, window.Keep = 700, 300
	for i := range 8 {
		require.NoError(t, c.say(t, state.UserText(fmt.Sprint(i, strings.Repeat(" word", 100)))))
	}
	require.Contains(t, c.last(), "The user has shown a picture.")
	require.Contains(t, seen, noMedium)
	require.NotContains(t, seen, badPicture)
	require.Equal(t, 1, c.count)
	require.Equal(t, []int{2}, c.marks())
}

// refusedUser is a user of a workspace whose provider refuses requests.
type refusedUser struct {
	*strict
	m  *workspace.Manager
	db store.Store
}

func (u *refusedUser) open(t *testing.T, a api, tools ...*tool.Tool) {
	c := refusedCase{strict: u.strict}
	m, err := workspace.Open(t.Context(), u.db, &workspace.Options{
		KeepMessages: 12, KeepResults: 2, Run: workspace.Loop(c.loopOf(a, false, &wire.Transport{Base: u.strict}, tools)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	u.m = m
}

func (u *refusedUser) say(t *testing.T, m state.Message) (workspace.Outcome, error) {
	return u.m.Handle(t.Context(), "ann", workspace.Message{Content: m})
}

// In a workspace a refusal is no dead letter. What is withheld survives the process,
// short histories and rounds, and a view marks it.
func TestRefusedInWorkspaces(t *testing.T) {
	a := apis[2]
	u := &refusedUser{db: store.NewMemory(), strict: &strict{
		next:   statetest.NewModel(t, a.format, statetest.Call("shoot", `{}`), statetest.Say("Done.").Times(-1)),
		refuse: naming(a, badPicture),
	}}
	for range 5 {
		u.open(t, a, shooting("A view."))
		out, err := u.say(t, state.UserText("Go."))
		require.NoError(t, err)
		require.Equal(t, "Done.", out.Reply)
		require.Contains(t, u.last(), noMedium)
		require.Equal(t, 1, u.count, "only the first time")
		view, err := u.m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Empty(t, view.DeadLetters)
		var marked []int
		for m := range view.Messages(0, -1) {
			if m.Withheld {
				marked = append(marked, m.Number)
				require.Contains(t, string(m.Message.Raw()), badPicture)
			}
		}
		require.Equal(t, []int{3}, marked)
		shown, err := json.Marshal(view.As("ui"))
		require.NoError(t, err)
		require.Contains(t, string(shown), badPicture)
		require.Equal(t, 1, strings.Count(string(shown), `"withheld":true`))
	}
	require.NoError(t, u.m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
		return transcript.ShowWithheld(run.State())
	}))
	view, err := u.m.View(t.Context(), "ann")
	require.NoError(t, err)
	for m := range view.Messages(0, -1) {
		require.False(t, m.Withheld)
	}
}

// Whatever of a turn a provider refuses later, the conversation goes on.
func TestRefusedWhateverItIs(t *testing.T) {
	for _, a := range apis {
		for name, word := range map[string]string{"arguments": "foul-args", "a result": "told", "the last word": "Foul answer", "the user": "Go on"} {
			for _, leadsAstray := range []bool{false, true} { // by pictures
				t.Run(fmt.Sprintf("%s/%s/%v", a.format, name, leadsAstray), func(t *testing.T) {
					tell := tool.Must(tool.New("tell", "Tells.", func(context.Context, struct {
						What string `json:"what"`
					}) (string, error) {
						return "told", nil
					}))
					answers := 0
					c := newRefusedCase(t, a, false, []*tool.Tool{tell}, statetest.Say("").Times(-1))
					c.next = scripting(func(string) []state.Message {
						if answers++; answers == 2 {
							return []state.Message{state.ToolCalls(state.ToolCall{ID: "call_1", Name: "tell", Input: `{"what":"foul-args"}`})}
						}
						return []state.Message{state.AssistantText("Foul answer.")}
					}, a)
					say := func(text string) error {
						if leadsAstray {
							return c.say(t, picture(text, goodPicture))
						}
						return c.say(t, state.UserText(text))
					}
					require.NoError(t, say("Hello."))
					c.refuse = refusing(400, unnamed[a.format][1], word)
					failed := 0
					for _, text := range []string{"Go on.", "Next.", "Last.", "More."} {
						if say(text) != nil {
							failed++
						}
					}
					require.LessOrEqual(t, failed, 1)
					require.Contains(t, c.last(), "More.")
					require.NotContains(t, c.last(), word)
				})
			}
		}
	}
}

// scripting is a provider that answers what a function says.
func scripting(say func(body string) []state.Message, a api) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body, _, err := statetest.Response(a.format, "m", state.InferenceResult{ID: "r", Output: say(string(raw))})
		if err != nil {
			return nil, err
		}
		return status(200, string(body), "Content-Type", "application/json")(req)
	})
}

// A request behind results is sent again twice, and not more.
func TestRefusedTwice(t *testing.T) {
	a := apis[2]
	c := newRefusedCase(t, a, false, []*tool.Tool{shooting("A view.")}, statetest.Call("shoot", `{}`), statetest.Say("One."), statetest.Call("shoot", `{}`))
	require.NoError(t, c.say(t, state.UserText("Go.")))
	c.refuse = func(body string) (int, string) {
		if strings.Count(body, `"tool_result"`) > 1 {
			return 400, unnamed[a.format][1]
		}
		return 0, ""
	}
	require.Error(t, c.say(t, state.UserText("Go on.")))
	require.Len(t, c.bodies, 2+1+3)
	require.Empty(t, c.marks())
}

// Words that the user says again are shown, pictures of instructions stay, and the
// error of the last request is whole.
func TestRefusedOnlyThere(t *testing.T) {
	a := apis[1]
	c := newRefusedCase(t, a, false, nil, statetest.Say("One.").Times(-1))
	instruction, err := state.Parts("system", `{"type":"input_image","image_url":"data:image/png;base64,`+goodPicture+`"}`)
	require.NoError(t, err)
	require.NoError(t, state.Messages.Set(c.st, []state.Message{instruction}))
	require.NoError(t, c.say(t, state.UserText("Before.")))
	c.refuse = refusing(400, unnamed[a.format][1], "Foul")
	require.Error(t, c.say(t, state.UserText("Foul words.")))
	require.Contains(t, c.last(), goodPicture)
	require.NoError(t, c.say(t, state.UserText("Again.")))
	c.refuse = func(string) (int, string) { return 0, "" }
	require.NoError(t, c.say(t, state.UserText("Foul words.")))
	require.Equal(t, 1, strings.Count(c.last(), "Foul words."), "only the second time")
	require.NoError(t, c.say(t, state.UserText("Bye.")))
	require.Equal(t, 1, strings.Count(c.last(), "Foul words."))
	a.request = strings.Replace(a.request, `"m"`, `"other"`, 1)
	require.NoError(t, state.Messages.Set(c.st, []state.Message{state.UserText("And you?")}))
	_, err = c.loopOf(a, false, &wire.Transport{Base: c.strict}, nil).Run(t.Context(), c.st)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(c.last(), "Foul words."), "whatever the model")

	c.refuse = refusing(400, unnamed[a.format][1], "")
	before := len(c.bodies)
	require.NoError(t, state.Messages.Set(c.st, []state.Message{picture("x", badPicture)}))
	req, err := http.NewRequestWithContext(state.NewContext(t.Context(), c.st), http.MethodPost, "http://model"+a.path, strings.NewReader(fmt.Sprintf(a.request, "")))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &wire.Transport{Base: c.strict}}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, unnamed[a.format][1], string(text))
	require.LessOrEqual(t, len(c.bodies)-before, 4)
}

// A process that dies between the refusal and the answer loses nothing: the next one
// is refused once more.
func TestRefusedBeforeACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, asked := apis[2], make(chan bool)
		model := scripting(func(string) []state.Message { return []state.Message{state.AssistantText("Done.")} }, a)
		u := &refusedUser{db: store.NewMemory(), strict: &strict{refuse: naming(a, badPicture)}}
		u.next = roundTripper(func(req *http.Request) (*http.Response, error) {
			close(asked)
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		u.open(t, a)
		_, err := u.m.Submit(t.Context(), "ann", workspace.Message{ID: "m", Content: picture("What is it?", badPicture)})
		require.NoError(t, err)
		<-asked
		require.Equal(t, 1, u.count)
		require.Error(t, u.m.Close(), "it is in the middle of a run")
		u.next = model
		u.open(t, a)
		out, err := u.m.Await(t.Context(), "ann", "m")
		require.NoError(t, err)
		require.Equal(t, "Done.", out.Reply)
		require.Equal(t, 2, u.count)
		require.Contains(t, u.last(), "What is it?")
		require.Contains(t, u.last(), noMedium)
		require.NoError(t, u.m.Close())
	})
}

// Each error of the table is a refusal, in its format and with its status only.
func TestRefusalsThatAreKnown(t *testing.T) {
	for _, tc := range []struct {
		format *provider.Format
		status int
		body   string
	}{
		{provider.Anthropic, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`},
		{provider.Anthropic, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Could not process PDF"}}`},
		{provider.Anthropic, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`},
		{provider.Anthropic, 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
		{provider.OpenAI, 400, `{"error":{"message":"You uploaded an unsupported image.","param":null,"code":"sanitizer_server_error"}}`},
		{provider.OpenAI, 400, `{"error":{"message":"x","code":"invalid_image_url"}}`},
		{provider.OpenAI, 400, `{"error":{"message":"Invalid content type. image_url is only supported by certain models."}}`},
		{provider.OpenAI, 400, `{"error":{"message":"Failed to deserialize the JSON body into the target type: unknown variant 'image_url', expected 'text' at line 1 column 9"}}`},
		{provider.OpenAI, 404, `{"error":{"message":"No endpoints found that support image input","code":404}}`},
		{provider.OpenAI, 400, `{"error":{"message":"invalid image input","type":"invalid_request_error"}}`},
		{provider.OpenAI, 400, `{"error":{"message":"x","type":null,"param":"prompt","code":"content_filter","status":400}}`},
		{provider.OpenAI, 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"code\":400,\"message\":\"Provided image is not valid.\"}}"}}}`},
		{provider.OpenAIResponses, 400, `{"error":{"message":"x","code":"image_content_policy_violation"}}`},
		{provider.OpenAIResponses, 400, `{"error":{"message":"x","code":"empty_image_file"}}`},
		{provider.OpenAIResponses, 400, `{"error":{"message":"x","code":"invalid_prompt"}}`},
		{provider.Gemini, 400, `{"error":{"code":400,"message":"Unable to process input image. Please retry","status":"INVALID_ARGUMENT"}}`},
		{provider.Gemini, 400, `{"error":{"code":400,"message":"Unsupported MIME type: png","status":"INVALID_ARGUMENT"}}`},
	} {
		for _, a := range apis {
			for _, code := range []int{tc.status, 403} {
				c := newRefusedCase(t, a, false, nil, statetest.Say("One.").Times(-1))
				c.refuse = refusing(code, tc.body, badPicture)
				err := c.say(t, picture("What is it?", badPicture))
				if a.format == tc.format && code == tc.status {
					require.NoError(t, err, tc.body)
					require.Equal(t, 1, c.count)
				} else if code == 403 {
					require.Error(t, err)
					require.Len(t, c.bodies, 1)
				}
			}
		}
	}
}

// A message that still fails is a dead letter, and the next one works.
func TestRefusedDeadLetters(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse string
		dead   int
	}{"the user": {"Foul", 1}, "a result": {"told", 0}, "everything": {"", 3}} {
		t.Run(name, func(t *testing.T) {
			a := apis[0]
			u := &refusedUser{db: store.NewMemory(), strict: &strict{
				next:   statetest.NewModel(t, a.format, statetest.Say("Done.").Times(-1)),
				refuse: func(string) (int, string) { return 0, "" },
			}}
			u.open(t, a, telling("told"))
			_, err := u.say(t, state.UserText("Hello."))
			require.NoError(t, err)
			u.refuse = refusing(400, unnamed[a.format][1], tc.refuse)
			_, err = u.say(t, state.UserText("Foul words."))
			require.Equal(t, tc.dead > 0, err != nil, "%v", err)
			for i := range 2 {
				_, err = u.say(t, state.UserText(fmt.Sprint("Message ", i)))
				require.Equal(t, tc.dead > 1, err != nil, "%v", err)
			}
			view, err := u.m.View(t.Context(), "ann")
			require.NoError(t, err)
			require.Len(t, view.DeadLetters, tc.dead)
		})
	}
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// sent is what a request says to the model.
type sent struct {
	format          *provider.Format
	prompt, history []state.Message

	tools   int                // of the program's request
	streams bool               // the response is to be a stream
	names   provider.ToolNames // that the provider refuses, by those that are sent

	files     files  // of the user
	container string // that the conversation has named, "" if the program's is sent or none

	continued bool // the provider holds the beginning of the conversation
	later     bool // the response is not the answer, which is fetched later
	resumes   bool // an SDK goes on with an answer of Gemini by itself
}

// complete returns what a request says, and its body, with what the State adds
// to it. If that is nothing, the body is the same bytes. It has the marks of files.
func (t *Transport) complete(
	ctx context.Context, st *state.State, format *provider.Format, at *url.URL, body []byte,
) (sent, []byte, error) {
	var masks *state.Redactor
	if t.Redact {
		if masks = st.Redactor(); runctx.RunOf(ctx) != nil {
			masks = runctx.RunOf(ctx).WithMemory(masks)
		}
		body = []byte(masks.Redact(string(body)))
	}
	request, err := t.decode(format, body)
	if err != nil {
		return sent{}, nil, err
	}
	settings, _ := jsontext.Members([]byte(request.Settings)) // an object: it has been decoded
	profile := request.Profile(format.Profile())
	s := readSettings(settings)
	s.continued, s.tools = request.Continued(), len(request.Tools)
	s.prompt, s.format = request.Messages, format
	profile = t.profileOf(ctx, profile, settings.String("model"), at)
	prompt, behind := t.ask(ctx, st, t.Prompt, masks), t.ask(ctx, st, t.Context, masks)
	memory := t.memoryOf(ctx)
	if s.continued && behind != "" { // the provider would keep it
		prompt, behind = strings.TrimPrefix(prompt+"\n\n"+origin.TagContext(behind), "\n\n"), ""
	} else if prompt != "" {
		t.watchPrompt(ctx, st, s.prompt, prompt)
	}
	if prompt != "" {
		s.prompt = withPrompt(s.prompt, prompt, format)
	}
	if !t.RecordOnly && !isOutside(ctx) {
		request = withTools(ctx, st, request)
		request, s.names = request.RenameTools(profile)
		switch {
		case s.resumes:
			err = errResumes
		case s.continued:
			err = holdsInput(st, request.Messages)
		default:
			if err = endsWithoutUser(request.Messages); err == nil {
				err = t.converse(ctx, st, &s, request, memory+behind, profile, masks)
			}
			request.Settings, s.container = nameSettings(ctx, st, request.Settings, format)
		}
		if err != nil {
			return sent{}, nil, err
		}
	}
	if behind != "" {
		behind = origin.TagContext(behind)
	}
	if prompt != "" || memory != "" || behind != "" || len(s.history) > 0 || len(s.names) > 0 ||
		len(request.Tools) > s.tools {
		request.Messages = slices.Concat(s.prompt, s.history)
		if memory != "" {
			request.Messages = withPrompt(request.Messages, memory, format)
		}
		if behind != "" {
			request.Messages = withContext(request.Messages, behind, format, profile)
		}
		request.Pictures = profile.Pictures
		s.files = files{}
		var left []provider.Omission
		if request.Messages, left, err = s.files.open(ctx, request.Messages); err != nil {
			return sent{}, nil, err
		}
		if body, err = t.encode(ctx, st, format, request, len(s.history) > 0, left); err != nil {
			return sent{}, nil, err
		}
		if masks != nil {
			body = []byte(masks.Redact(string(body)))
			s.files.mask(masks)
		}
	}
	return s, t.prepareCache(ctx, format, body, behind), nil
}

// encode encodes a request, and tells of what is left out, besides what was left. What
// it has of a conversation, and the last one with a conversation of the State and its
// forks had, is not encoded again.
func (t *Transport) encode(
	ctx context.Context, st *state.State, format *provider.Format, r provider.Request, hasConversation bool,
	left []provider.Omission,
) ([]byte, error) {
	kept := inside.Encoded(st)
	var before *provider.Encoded
	if hasConversation {
		before, _ = kept.Load().(*provider.Encoded)
	}
	body, omitted, next, err := format.EncodeNext(internal.Key{}, r, before)
	if err != nil {
		return nil, err
	}
	if hasConversation {
		kept.Store(next) // nil drops what is of no use
	}
	if omitted = append(omitted, left...); t.Omitted != nil && len(omitted) > 0 {
		t.Omitted(ctx, omitted)
	}
	return body, nil
}

// tokensBesides returns about how many tokens a request has besides the
// conversation.
func tokensBesides(request provider.Request, prompt []state.Message, behind string) int {
	texts := []string{string(request.Settings), behind}
	for _, t := range request.Tools {
		texts = append(texts, t.Name, t.Description, string(t.Schema))
	}
	tokens := transcript.EstimateTokens(state.UserText(strings.Join(texts, "\n")))
	for _, m := range prompt {
		tokens += transcript.EstimateTokens(m)
	}
	return tokens
}

// ask returns what a function of the program says, without secrets.
func (t *Transport) ask(
	ctx context.Context, st *state.State, say func(context.Context, *state.State) string, masks *state.Redactor,
) string {
	if say == nil {
		return ""
	}
	return masks.Redact(say(ctx, st))
}

// memoryOf returns what the workspace in whose run the request is made remembers of
// the user, for the end of the system prompt. It stands in front of what the user says:
// there, a model would read it as the words of the user.
func (t *Transport) memoryOf(ctx context.Context) string {
	run := runctx.RunOf(ctx)
	if run == nil || t.RecordOnly || isOutside(ctx) {
		return ""
	}
	return strings.TrimSuffix(run.Memory(), "\n")
}

// profileOf returns what the provider demands of the request, for what its format and
// its settings demand.
func (t *Transport) profileOf(
	ctx context.Context, profile transcript.Profile, model string, at *url.URL,
) transcript.Profile {
	if in := modelInPath.FindStringSubmatch(at.Path); in != nil {
		model = in[1]
	}
	profile = profile.At(at.Hostname(), model)
	if t.Profile != nil {
		profile = t.Profile(ctx, profile)
	}
	return profile
}

// modelInPath is the model that the path of a request to Gemini names.
var modelInPath = regexp.MustCompile(`/models/([^/:]+):`)

// decode reads the body of a request. Without RecordOnly, the list of messages
// may be missing or null: some SDKs send none if they have no messages.
func (t *Transport) decode(format *provider.Format, body []byte) (provider.Request, error) {
	request, err := format.DecodeRequest(body)
	if err == nil || t.RecordOnly || jsontext.Check(body, jsontext.Limits{}) != nil {
		return request, err
	}
	list := "messages"
	if format == provider.Gemini {
		list = "contents"
	}
	members, failed := jsontext.Members(body)
	if failed != nil || !jsontext.IsNull(members.Get(list)) {
		return request, err
	}
	return format.DecodeRequest(members.With(list, []byte("[]")).JSON())
}

// errResumes is the error of a request by which an SDK goes on with an answer that was
// not finished. The State has the first part of it as an answer, or not at all, and
// would have the rest as another one.
var errResumes = fmt.Errorf("%w: it goes on with an answer of which the State has a part, or nothing: set AutomaticContinuation of genai to false", state.ErrInvalid)

// errNoInput is the error of a request that names what the provider holds, and has
// nothing of what the State has since.
var errNoInput = fmt.Errorf("%w: the provider is sent nothing of what was said or done since its answer: "+
	"put that into the input, or leave previous_response_id and conversation out, and the conversation of the State is sent", state.ErrInvalid)

// holdsInput returns an error if a request to a provider that holds the conversation
// has nothing but instructions, and the State ends with what it waits for: a turn of
// the user, or a result.
func holdsInput(st *state.State, request []state.Message) error {
	if slices.ContainsFunc(request, func(m state.Message) bool { return !origin.IsSystem(m) }) {
		return nil
	}
	conversation := state.Messages.GetOr(st, nil) // none without the right to read it
	if len(conversation) == 0 {
		return nil
	}
	last := conversation[len(conversation)-1]
	if _, isResult := last.(state.ToolResultMessage); isResult || last.Role() == "user" {
		return errNoInput
	}
	return nil
}

// errSaid is the error of a request whose own messages end with a turn of the user, or
// with a result.
var errSaid = fmt.Errorf("%w: its messages end with what the user says, or with a result, which the State would not have: "+
	"add that by State.UserSays and send instructions only, or set RecordOnly if the program has the conversation", state.ErrInvalid)

// endsWithoutUser returns an error if the messages of a request, in front of the
// conversation of the State, end with what a model is to answer.
func endsWithoutUser(request []state.Message) error {
	for _, m := range slices.Backward(request) {
		if origin.IsSystem(m) {
			continue
		}
		if _, isResult := m.(state.ToolResultMessage); isResult || m.Role() == "user" {
			return errSaid
		}
		return nil
	}
	return nil
}

// readSettings returns what the settings of a request say about it.
func readSettings(settings jsontext.Object) sent {
	s := sent{streams: settings.Bool("stream")}
	s.later = settings.Bool("background") && !s.streams
	s.resumes = settings.String("continuationToken") != ""
	return s
}

// conversation returns what the model is shown of the conversation. extra returns the
// number of tokens that the request has besides.
func (t *Transport) conversation(ctx context.Context, st *state.State, extra func() int) ([]state.Message, error) {
	window := t.Window
	if run := runctx.RunOf(ctx); window == nil && run != nil {
		window, _ = run.Window().(*transcript.Window)
	}
	if window != nil {
		return window.Messages(ctx, st, extra())
	}
	conversation, err := state.Messages.Get(st)
	if errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	return transcript.Withhold(ctx, st, conversation), err
}

// converse adds the conversation of the State to what is sent, so that the
// provider accepts the whole. besides is what the request says besides its messages and
// tools.
func (t *Transport) converse(
	ctx context.Context, st *state.State, s *sent, r provider.Request, besides string, profile transcript.Profile,
	masks *state.Redactor,
) error {
	conversation, err := t.conversation(ctx, st, func() int { return tokensBesides(r, s.prompt, besides) })
	if err != nil {
		return err
	}
	if len(conversation) == 0 {
		return nil
	}
	if turn := turnOf(ctx, st); turn != nil {
		if conversation, err = turn.Prompt(ctx, conversation); err != nil {
			return err
		}
	}
	conversation = nameable(r.Settings, s.format, origin.WholeInputs(conversation))
	policy := transcript.Policy{AnswerCalls: true}
	if t.Policy != nil {
		policy = t.Policy(ctx, st)
	}
	if run := runctx.RunOf(ctx); run != nil && policy.Suspended == nil {
		policy.Suspended = run.Waiting()
	}
	// The rules hold for the whole: ids must not repeat, and the user may have
	// spoken in the messages of the request.
	whole, changes := transcript.Repair(slices.Concat(s.prompt, conversation), profile, policy)
	if t.Changed != nil && len(changes) > 0 {
		t.Changed(ctx, changes)
	}
	n := len(s.prompt)
	if len(changes) > 0 {
		n = promptLen(whole, s.prompt, conversation)
	}
	s.prompt, s.history = whole[:n:n], whole[n:]
	if masks != nil {
		s.history = slices.Clone(s.history)
		for i, m := range s.history {
			s.history[i] = maskMessage(m, masks)
		}
	}
	return nil
}

// promptLen returns how many messages of a repaired whole come from the prompt.
// A repair replaces messages, and adds some next to those that are concerned.
func promptLen(whole, prompt, conversation []state.Message) int {
	last, end := -1, len(whole)
	for i, m := range whole {
		if slices.Contains(conversation, m) {
			end = i
			break
		}
		if slices.Contains(prompt, m) {
			last = i
		}
	}
	if last < 0 {
		return min(len(prompt), end)
	}
	return min(last+len(prompt)-slices.Index(prompt, whole[last]), end)
}

// maskMessage returns a message without secrets. It returns the message itself
// if it has none, or if masks would destroy it: the body is masked as well.
func maskMessage(m state.Message, masks *state.Redactor) state.Message {
	raw := string(m.Raw())
	masked := masks.Redact(raw)
	if masked == raw {
		return m
	}
	if n, err := state.DecodeMessage([]byte(masked)); err == nil && n.Type() == m.Type() && n.Role() == m.Role() {
		return n
	}
	return m
}

// withPrompt returns messages with a paragraph at the end of the system prompt,
// which is the beginning of the messages. It continues the last text: some
// models take one text only. If there is none, or if it has parts, it is a
// message of its own.
func withPrompt(msgs []state.Message, text string, format *provider.Format) []state.Message {
	n := systemLen(msgs)
	role := "system"
	if n > 0 {
		last := msgs[n-1]
		if content := last.(state.TextMessage).Content(); jsontext.Kind([]byte(content)) == "string" {
			joined := jsontext.AppendQuote(nil, content.Text()+"\n\n"+text)
			if m, err := origin.WithMember(last, "content", joined); err == nil {
				msgs = slices.Clone(msgs)
				msgs[n-1] = m
				return msgs
			}
		}
		role = last.Role() // OpenAI does not mix system and developer
	}
	added := state.Text(role, text)
	if format == provider.OpenAIResponses && n == 0 {
		// The provider does not keep instructions for the next request, as it
		// may keep the other messages.
		kept := jsontext.Object{}.WithString("in", "instructions")
		if m, err := origin.WithMember(added, origin.OpenAIResponses, kept.JSON()); err == nil {
			return slices.Insert(slices.Clone(msgs), 0, m)
		}
	}
	return slices.Insert(slices.Clone(msgs), n, state.Message(added))
}

// systemLen returns the number of messages that are the system prompt.
func systemLen(msgs []state.Message) int {
	n := 0
	for n < len(msgs) && origin.IsSystem(msgs[n]) {
		n++
	}
	return n
}

package wire

import (
	"context"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Fields is a function for [Transport].Context: it lets the model read the fields that
// the handle on the State may read, as [state.State.Describe] does. In a run of package
// workspace, all secrets of the workspace are masked, also where other values repeat
// them.
func Fields(ctx context.Context, st *state.State) string {
	if run := runctx.RunOf(ctx); run != nil {
		return run.Redact(st.Describe())
	}
	return st.Describe()
}

// withContext returns messages with a text behind them. If the user has spoken
// last, it is the last part of what the user says: some servers refuse two
// messages of the user in a row. If the assistant has, it is a part of the last
// message of the user, so that the model goes on with its own words. Otherwise it
// is a message of the user.
func withContext(
	msgs []state.Message, text string, format *provider.Format, profile transcript.Profile,
) []state.Message {
	if i := contextPlace(msgs, format, profile); i < len(msgs) {
		if m, err := withPart(msgs[i], text, format); err == nil {
			msgs = slices.Clone(msgs)
			msgs[i] = m
			return msgs
		}
	}
	var added state.Message = state.UserText(text)
	if n := len(msgs); n > 0 && format == provider.Anthropic && msgs[n-1].Type() == "tool_result" {
		joined := []byte(`{"joined":true}`) // one entry has the results and the text
		if m, err := origin.WithMember(added, origin.Anthropic, joined); err == nil {
			added = m
		}
	}
	return append(slices.Clip(msgs), added)
}

// contextPlace returns the index of the message that the context becomes a part
// of, len(msgs) for a message of its own.
func contextPlace(msgs []state.Message, format *provider.Format, profile transcript.Profile) int {
	i := len(msgs) - 1
	isAlone := false
	if format == provider.Anthropic {
		for n := i + 1; n > 0 && !isAlone && msgs[n-1].Type() == "tool_result"; n-- {
			isAlone = codeWaits(msgs[:n-1])
		}
	}
	if i < 0 || !isUserText(msgs[i]) && !wantsAssistant(msgs[i], profile) && !isAlone {
		return len(msgs)
	}
	for i >= 0 && !isUserText(msgs[i]) {
		i--
	}
	if i < 0 {
		return len(msgs)
	}
	return i
}

// alone returns messages to Anthropic in which the results that code of the provider
// waits for are all that the user says there. What else is said at that place is
// said in front of the calls. "If there are pending programmatic tool calls waiting
// for results, your response message must contain only tool_result blocks"
// (Anthropic's guide to programmatic tool calling). See also
// github.com/openai/openai-agents-js/issues/1542.
func alone(msgs []state.Message) []state.Message {
	place := 0 // behind what the user has said last, and no code waits for
	for i := 0; i < len(msgs); i++ {
		if origin.FromAssistant(msgs[i]) || !codeWaits(msgs[:i]) {
			if isUserText(msgs[i]) {
				place = i + 1
			}
			continue
		}
		var results, moved []state.Message
		end := i
		for ; end < len(msgs) && !origin.FromAssistant(msgs[end]); end++ {
			if m := msgs[end]; m.Type() == "tool_result" {
				results = append(results, m)
			} else {
				moved = append(moved, m)
			}
		}
		if len(moved) > 0 && place > 0 {
			msgs = slices.Concat(msgs[:place], moved, msgs[place:i], results, msgs[end:])
			place += len(moved)
		}
		i = end - 1
	}
	return msgs
}

// codeWaits reports whether code of Anthropic waits for the results of the calls that
// messages end with: it has made them, or they were made beside a call of the
// provider's own tools that has no result yet.
func codeWaits(msgs []state.Message) bool {
	open, calls, made := 0, false, false
	for n := len(msgs); n > 0 && origin.FromAssistant(msgs[n-1]); n-- {
		if _, own := msgs[n-1].Extra(origin.Anthropic); !own {
			continue
		}
		switch m := msgs[n-1].(type) {
		case state.ToolCallMessage:
			calls, made = true, made || slices.ContainsFunc(inside.SharedCalls(m), isMadeByCode)
		case state.TextMessage:
			if !strings.Contains(string(m.Content()), "_tool_") {
				continue
			}
			parts, _ := jsontext.Elements([]byte(m.Content())) // none if it is a text
			for _, raw := range parts {
				part, _ := jsontext.Members(raw)
				switch typ := part.String("type"); {
				case strings.HasSuffix(typ, "_tool_use"):
					open++
				case strings.HasSuffix(typ, "_tool_result"):
					open--
				}
			}
		}
	}
	return made || calls && open > 0
}

// isMadeByCode reports whether code of Anthropic has made a call.
func isMadeByCode(c state.ToolCall) bool {
	extra, _ := jsontext.Members([]byte(c.Extra)) // none if it is empty
	caller := extra.Object(origin.Anthropic).Object("more").Object("caller")
	return caller != nil && caller.String("type") != "direct"
}

// wantsAssistant reports whether the assistant must speak after a message.
func wantsAssistant(m state.Message, profile transcript.Profile) bool {
	return origin.FromAssistant(m) || m.Type() == "tool_result" && profile.Rules().AssistantAfterResults
}

func isUserText(m state.Message) bool {
	_, ok := m.(state.TextMessage)
	return ok && m.Role() == "user"
}

// withPart returns a text with another one behind it. What stood there stays the
// same to the byte. Not every server with a format of OpenAI takes parts.
func withPart(m state.Message, text string, format *provider.Format) (state.Message, error) {
	content := []byte(m.(state.TextMessage).Content())
	part := jsontext.Object{}.WithString("type", "text").WithString("text", text)
	var parts [][]byte
	switch jsontext.Kind(content) {
	case "string":
		said := jsontext.Unquote(content)
		if format != provider.Anthropic && format != provider.Gemini {
			return origin.WithMember(m, "content", jsontext.AppendQuote(nil, said+"\n\n"+text))
		}
		parts = [][]byte{jsontext.Object{}.WithString("type", "text").WithString("text", said).JSON()}
	case "array":
		parts, _ = jsontext.Elements(content) // checked with the message
		if _, own := origin.Of(m, origin.OpenAIResponses); own && format == provider.OpenAIResponses {
			part = jsontext.Object{}.WithString("type", "input_text").WithString("text", text)
		}
	}
	return origin.WithMember(m, "content", jsontext.Array(append(slices.Clip(parts), part.JSON())))
}

package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// script returns the messages of a conversation that is written in short:
//
//	s d u a     a text of the system, the developer, the user, an assistant
//	c1 c1,2     calls of f, one for each id
//	c1=g c=g    a call of g, with an id and without
//	r1 r1=g r=g a result likewise
//	think       an assistant's text that is only reasoning
//	rs1         a reasoning item of the Responses API
//	msg1        an assistant's text that is an item of the Responses API
//
// A + in front says that the message is in one entry with the message before it,
// and a - that it is not.
func script(t testing.TB, text string) []state.Message {
	t.Helper()
	var msgs []state.Message
	for i, word := range strings.Fields(text) {
		mark := ""
		switch word[0] {
		case '+':
			mark, word = `,"openai":{"joined":true}`, word[1:]
		case '-':
			mark, word = `,"openai":{"joined":false}`, word[1:]
		}
		msgs = append(msgs, decode(t, "{"+messageOf(i, word)+mark+"}"))
	}
	return msgs
}

func messageOf(i int, word string) string {
	roles := map[string]string{"s": "system", "d": "developer", "u": "user", "a": "assistant"}
	if role, ok := roles[word]; ok {
		return fmt.Sprintf(`"type":"text","role":%q,"content":"text %d"`, role, i)
	}
	if word == "think" {
		return `"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"…","signature":"c2ln"}]`
	}
	if id, ok := strings.CutPrefix(word, "rs"); ok {
		return fmt.Sprintf(`"type":"openai_responses.reasoning","role":"assistant","item":{"type":"reasoning","id":"rs_%s","summary":[]}`, id)
	}
	if id, ok := strings.CutPrefix(word, "msg"); ok {
		return fmt.Sprintf(`"type":"text","role":"assistant","content":"text %d","openai_responses":{"more":{"id":"msg_%s"}}`, i, id)
	}
	var tools []string
	for _, call := range strings.Split(word[1:], ",") {
		id, name, named := strings.Cut(call, "=")
		if !named {
			name = "f"
		}
		tools = append(tools, fmt.Sprintf(`{"type":"tool","id":%q,"name":%q}`, id, name))
	}
	if word[0] == 'c' {
		return fmt.Sprintf(`"type":"tool_call","role":"assistant","tools":[%s]`, strings.Join(tools, ","))
	}
	return fmt.Sprintf(`"type":"tool_result","role":"tool_result","tool":%s,"content":"result %d"`, tools[0], i)
}

func decode(t testing.TB, text string) state.Message {
	t.Helper()
	m, err := state.DecodeMessage([]byte(text))
	require.NoError(t, err, text)
	return m
}

func continued(p transcript.Profile) transcript.Profile {
	p.Continued = true
	return p
}

func noPrefill(p transcript.Profile) transcript.Profile {
	p.NoPrefill = true
	return p
}

func thinking(p transcript.Profile) transcript.Profile {
	p.Thinking = true
	return p
}

func thoughtSignatures(p transcript.Profile) transcript.Profile {
	p.ThoughtSignatures = true
	return p
}

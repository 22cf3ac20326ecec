package aisdkstate_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clients are clients of the AI SDK, in one process of Node.
type clients struct {
	s   *site
	in  io.Writer
	out *bufio.Scanner
}

func newClients(s *site) *clients {
	if _, err := os.Stat("clients/node_modules"); err != nil {
		if strings.Contains(os.Getenv("STATE_TEST_REQUIRE"), "aisdk") {
			s.t.Fatal("clients/node_modules is missing")
		}
		s.t.Skip("NOT TESTED: no npm ci in clients")
	}
	cmd := exec.Command("node", "clients/clients.mjs")
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	cmd.Stderr = os.Stderr
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	c := &clients{s, in, bufio.NewScanner(out)}
	c.out.Buffer(nil, 1<<20)
	return c
}

// shown is what a client shows.
type shown struct {
	Messages []struct {
		ID, Role string
		Parts    []struct {
			Type, Text, State string
			Output            any
		}
	}
	Status, Error, Failed string
	Fields                object
}

// says returns a line for each message, with its texts and the states of its calls.
func (s shown) says() (list []string) {
	for _, m := range s.Messages {
		line := m.Role + ":"
		for _, p := range m.Parts {
			switch {
			case p.Type == "text":
				line += " " + p.Text
			case p.Type == "reasoning":
				line += " (" + p.Text + ")"
			case strings.HasPrefix(p.Type, "tool-"):
				line += " [" + p.Type[5:] + " " + p.State + "]"
			}
		}
		list = append(list, line)
	}
	return list
}

// do lets the client of a name do something.
func (c *clients) do(name, verb string, more ...any) (s shown) {
	c.s.t.Helper()
	command := object{"name": name, "verb": verb, "url": c.s.srv.URL, "id": "c"}
	for i := 0; i < len(more); i += 2 {
		command[more[i].(string)] = more[i+1]
	}
	data, err := json.Marshal(command)
	require.NoError(c.s.t, err)
	_, err = c.in.Write(append(data, '\n'))
	require.NoError(c.s.t, err)
	require.True(c.s.t, c.out.Scan(), "the clients have ended")
	require.NoError(c.s.t, json.Unmarshal(c.out.Bytes(), &s))
	require.Empty(c.s.t, s.Failed)
	return s
}

// same checks that a client shows what one does that has just been opened.
func (c *clients) same(name string) shown {
	c.s.t.Helper()
	require.NoError(c.s.t, c.s.m.Wait(c.s.t.Context()))
	now := c.do(name, "settle")
	require.Equal(c.s.t, c.do("fresh", "open").says(), now.says())
	return now
}

// The client of the AI SDK talks, thinks, lets calls be approved in either tab, edits,
// answers again, stops and comes back in the middle of an answer.
func TestClientOfTheSDK(t *testing.T) {
	s := newSite(t)
	c := newClients(s)
	c.do("a", "open")
	got := c.do("a", "send", "text", "Hello there")
	require.Equal(t, "ready", got.Status)
	require.Equal(t, []string{"user: Hello there", "assistant: (Hm.) You say Hello there"}, c.same("a").says())

	got = c.do("a", "send", "text", "pay")
	require.Equal(t, "assistant: [pay approval-requested]", got.says()[3])
	c.same("a")
	c.do("a", "decide", "approved", true)
	got = c.same("a")
	require.Equal(t, "assistant: [pay output-available] (Hm.) It is done.", got.says()[3])
	require.Equal(t, 1, s.paid)

	c.do("a", "send", "text", "pay more")
	c.do("b", "open") // a second tab
	c.do("b", "decide", "approved", false)
	got = c.same("b")
	require.Equal(t, "assistant: [pay output-denied] (Hm.) It is done.", got.says()[5])
	require.Equal(t, 1, s.paid)
	// The first tab still shows the buttons: it is answered all the same.
	got = c.do("a", "decide", "approved", true)
	require.Equal(t, "ready", got.Status)
	require.Equal(t, "assistant: [pay output-denied] (Hm.) It is done.", got.says()[5])
	require.Equal(t, 1, s.paid)

	// A message while a call waits does not end the chat.
	c.do("a", "send", "text", "pay once more")
	got = c.do("a", "send", "text", "Wait")
	require.Equal(t, "assistant: (Hm.) You say Wait", got.says()[9])

	// An edit, and the same once more.
	question := got.Messages[8].ID
	got = c.do("a", "send", "text", "Really", "edit", question)
	require.Equal(t, "assistant: (Hm.) You say Really", got.says()[9])
	got = c.do("a", "regenerate") // the client has dropped the answer that names the branch
	require.Equal(t, "assistant: (Hm.) You say Really", got.says()[9])
	require.NoError(t, s.m.Wait(t.Context()))
	c.do("a", "open") // the call that waits is not made in the branch: that is of an earlier answer, which no stream is about
	got = c.do("a", "regenerate")
	require.Equal(t, "assistant: (Hm.) You say Really", got.says()[9])
	require.Equal(t, "ready", got.Status)
	c.same("a")

	// A tab that comes in the middle of an answer goes on with it, and Stop keeps what was said.
	c.do("a", "begin", "text", "hold", "until", "Half")
	c.do("b", "open")
	got = c.do("a", "stop")
	require.Equal(t, "ready", got.Status)
	require.Contains(t, got.says()[11], "Half")
	require.Contains(t, c.do("b", "open").says()[11], "Half")
	c.do("a", "begin", "text", "hold on", "until", "Half")
	c.do("b", "open")
	c.do("b", "resume", "until", "Half")
	close(s.goOn)
	require.Equal(t, "assistant: Half and half.", c.same("b").says()[13])
	require.Equal(t, "assistant: Half and half.", c.same("a").says()[13])

	got = c.do("a", "send", "text", "fail")
	require.Equal(t, "error", got.Status)
	require.NotContains(t, got.Error, "sk-123")
}

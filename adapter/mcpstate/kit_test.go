package mcpstate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// The environment of a process that is the desk of one client, over stdio.
const (
	fileVariable  = "MCPSTATE_FILE" // of its store; only such a process has it
	userVariable  = "MCPSTATE_USER"
	agentVariable = "MCPSTATE_AGENT"
)

func TestMain(m *testing.M) {
	file := os.Getenv(fileVariable)
	if file == "" {
		os.Exit(m.Run())
	}
	if err := serveStdio(context.Background(), file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveStdio(ctx context.Context, file string) error {
	m, err := openDesk(ctx, file)
	if err != nil {
		return err
	}
	defer m.Close()
	srv := newDesk(m, file, func(mcp.Request) (user, agent string, err error) {
		return os.Getenv(userVariable), os.Getenv(agentVariable), nil
	})
	return srv.Run(ctx, &mcp.StdioTransport{})
}

// openDesk opens the workspaces in a file.
func openDesk(ctx context.Context, file string) (*workspace.Manager, error) {
	db, err := sqlitestore.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	return workspace.Open(ctx, db, &workspace.Options{Schema: schema})
}

// newDesk returns a server of the workspaces in a file. Its calls of refund are
// lines of file.log.
func newDesk(m *workspace.Manager, file string, who func(mcp.Request) (string, string, error)) *mcp.Server {
	states := mcpstate.Workspaces(m, who)
	srv := newServer()
	mcpstate.AddTools(srv, states, tools(func() { must(appendLine(file + ".log")) })...)
	mcpstate.AddFields(srv, states)
	return srv
}

func appendLine(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("refund\n")
	return errors.Join(err, f.Close())
}

// A connector connects a client to the desk in a file, with the rights of an
// agent of a user.
type connector func(user, agent string, opts *mcp.ClientOptions, version string) *mcp.ClientSession

// transports are the ways to the desk in a file that m has opened.
var transports = map[string]func(t *testing.T, m *workspace.Manager, file string) connector{
	"http": func(t *testing.T, m *workspace.Manager, file string) connector {
		url := serve(t, newDesk(m, file, who))
		return func(user, agent string, opts *mcp.ClientOptions, version string) *mcp.ClientSession {
			return connect(t, url, user, agent, opts, version)
		}
	},
	"stdio": func(t *testing.T, _ *workspace.Manager, file string) connector {
		return func(user, agent string, opts *mcp.ClientOptions, version string) *mcp.ClientSession {
			process := exec.CommandContext(t.Context(), os.Args[0])
			process.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0",
				fileVariable+"="+file, userVariable+"="+user, agentVariable+"="+agent)
			process.Stderr = os.Stderr
			return connectTo(t, &mcp.CommandTransport{Command: process}, opts, version)
		}
	},
}

var (
	card    = &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	order   = &state.Field[string]{Name: "order", Read: state.Public}
	refunds = &state.Field[[]int]{Name: "refunds", Owner: "billing", Handler: state.Append[[]int]()}
	notes   = &state.Field[[]string]{
		Name: "notes", Read: state.Public, Write: state.Public, Handler: state.Append[[]string](),
	}
	schema = state.MustSchema(card, order, refunds, notes, state.Team{"billing": {"guest"}})
)

// tools are those of a desk. refunding is called by refund.
func tools(refunding func()) []*tool.Tool {
	return []*tool.Tool{
		tool.Must(tool.New("refund", "Refund an amount.", func(_ context.Context, in struct {
			Amount int    `json:"amount"`
			Card   string `json:"card"`
		}) (map[string]any, error) {
			refunding()
			if in.Amount < 0 {
				return nil, errors.New("the amount is negative")
			}
			return map[string]any{"to": in.Card, "amount": in.Amount}, nil
		}, tool.From(card, "card"), tool.ToFunc(refunds, "amount", func(n int) ([]int, error) { return []int{n}, nil }))),
		tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return in.Text, nil
		}, tool.ToFunc(notes, "", func(text string) ([]string, error) { return []string{text}, nil }),
			tool.Annotate(tool.Annotations{Title: "Note", Idempotent: true}))),
	}
}

func desk() *state.State {
	st := state.New(schema)
	must(card.Set(st, "4242-4242"))
	must(order.Set(st, "#W1"))
	return st
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// who reads the sender of a request from headers that a test sets.
func who(req mcp.Request) (user, agent string, err error) {
	extra := req.GetExtra()
	if extra == nil || extra.Header.Get("X-User") == "" {
		return "", "", errors.New("not authenticated")
	}
	return extra.Header.Get("X-User"), extra.Header.Get("X-Agent"), nil
}

func agentOf(req mcp.Request) (string, error) {
	_, agent, err := who(req)
	return agent, err
}

func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
}

// serve serves over HTTP until the test ends.
func serve(t *testing.T, srv *mcp.Server) string {
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	t.Cleanup(server.Close)
	return server.URL
}

type headers struct{ user, agent string }

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-User", h.user)
	r.Header.Set("X-Agent", h.agent)
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, user, agent string, opts *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: headers{user, agent}},
	}, opts, version)
}

func connectTo(t testing.TB, transport mcp.Transport, opts *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// connectInMemory connects a client to a server in the process.
func connectInMemory(t testing.TB, srv *mcp.Server) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := srv.Connect(t.Context(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	return connectTo(t, ours, nil, "")
}

// text returns what a call says, with "error: " before a failure.
func text(result *mcp.CallToolResult, err error) string {
	if err != nil {
		return "protocol: " + err.Error()
	}
	var b strings.Builder
	if result.IsError {
		b.WriteString("error: ")
	}
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		} else {
			fmt.Fprintf(&b, "<%T>", c)
		}
	}
	return b.String()
}

func call(t *testing.T, s *mcp.ClientSession, name string, args any) string {
	t.Helper()
	return text(s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args}))
}

func names(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// uris returns the URIs of the resources that a client sees.
func uris(t *testing.T, s *mcp.ClientSession) (uris []string) {
	t.Helper()
	for r, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	return uris
}

// read returns the value of a field, or the error.
func read(t *testing.T, s *mcp.ClientSession, user, field string) string {
	result, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: mcpstate.URI(user, field)})
	if err != nil {
		return err.Error()
	}
	return result.Contents[0].Text
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if fmt.Sprintf("%#v", want) != fmt.Sprintf("%#v", got) {
		t.Errorf("\nwant %#v\ngot  %#v", want, got)
	}
}

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in %q", part, text)
	}
}

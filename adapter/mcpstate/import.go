package mcpstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// ImportOptions configures [Import].
type ImportOptions struct {
	// Prefix is put before the names of the tools, for two servers whose tools
	// have the same names.
	Prefix string
	// Bind returns the options of a tool: the fields that are injected and
	// written (default: none).
	Bind func(t *mcp.Tool) []tool.Option
	// Meta returns the _meta of a call (default: the id of the call as
	// IdempotencyKey, if there is one). An id is unique within its conversation
	// only: in a workspace, put the id of the run before it.
	Meta func(ctx context.Context) mcp.Meta
}

// Import returns the tools of a server as tools of a state, for tool.Run. Names
// that a provider would refuse are changed as transcript.OpenAI.ToolName does.
// It is an error if two tools get one name.
//
// A result of one text is that text: JSON if it is JSON. Other results are a
// list of MCP's contents, which the formats of package provider translate,
// pictures too. A result that is an error is the error of the call, for the
// model to read.
func Import(ctx context.Context, session *mcp.ClientSession, opts *ImportOptions) ([]*tool.Tool, error) {
	if opts == nil {
		opts = &ImportOptions{}
	}
	var tools []*tool.Tool
	origin := map[string]string{}
	for remote, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, wrap("list tools", err)
		}
		name := transcript.OpenAI.ToolName(opts.Prefix + remote.Name)
		if other, ok := origin[name]; ok {
			return nil, fmt.Errorf("mcpstate: import: tools %q and %q would both be %q", other, remote.Name, name)
		}
		origin[name] = remote.Name
		t, err := opts.tool(session, name, remote)
		if err != nil {
			return nil, wrap(fmt.Sprintf("import tool %q", remote.Name), err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func (o *ImportOptions) tool(session *mcp.ClientSession, name string, remote *mcp.Tool) (*tool.Tool, error) {
	schema, err := state.JSONOf(remote.InputSchema)
	if err != nil {
		return nil, err
	}
	var opts []tool.Option
	if a := remote.Annotations; a != nil {
		opts = append(opts, tool.Annotate(tool.Annotations{
			Title: a.Title, ReadOnly: a.ReadOnlyHint, Destructive: a.DestructiveHint,
			Idempotent: a.IdempotentHint, OpenWorld: a.OpenWorldHint,
		}))
	}
	if o.Bind != nil {
		opts = append(opts, o.Bind(remote)...)
	}
	call := func(ctx context.Context, args state.JSON) (state.JSON, error) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{
			Meta: o.meta(ctx), Name: remote.Name, Arguments: json.RawMessage(args),
		})
		if err != nil {
			return "", err
		}
		if result.IsError {
			return "", errors.New(texts(result))
		}
		return content(result)
	}
	return tool.Raw(name, remote.Description, schema, call, opts...)
}

func (o *ImportOptions) meta(ctx context.Context) mcp.Meta {
	if o.Meta != nil {
		return maps.Clone(o.Meta(ctx)) // the SDK adds to it
	}
	if call, ok := tool.CallOf(ctx); ok && call.ID != "" {
		return mcp.Meta{IdempotencyKey: call.ID}
	}
	return nil
}

// content returns a result as JSON. The text is preferred to the structured
// content, whose numbers the SDK has decoded as float64.
func content(result *mcp.CallToolResult) (state.JSON, error) {
	var text *mcp.TextContent
	if len(result.Content) == 1 {
		text, _ = result.Content[0].(*mcp.TextContent)
	}
	switch {
	case text != nil && state.JSON(text.Text).Valid():
		return state.JSON(text.Text), nil
	case len(result.Content) == 0, text != nil && result.StructuredContent != nil:
		return state.JSONOf(result.StructuredContent)
	case text != nil:
		return state.JSONOf(text.Text)
	}
	return state.JSONOf(result.Content)
}

// texts returns the texts of a result.
func texts(result *mcp.CallToolResult) string {
	var lines []string
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, text.Text)
		}
	}
	if len(lines) == 0 {
		return "the tool failed without a text"
	}
	return strings.Join(lines, "\n")
}

package mcpstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
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
	// Meta returns the _meta of a call (default: the Key of [tool.CallOf] as
	// IdempotencyKey). If it has no IdempotencyKey, a server cannot tell that a call
	// is made again.
	Meta func(ctx context.Context) mcp.Meta
}

// Import returns the tools of a server as tools of a state, for tool.Run. Names
// that a provider would refuse are changed as transcript.OpenAI.ToolName does.
// It is an error if two tools get one name.
//
// A result of one text is that text: JSON if it is JSON. Other results are a
// list of MCP's contents, which the formats of package provider translate,
// pictures too. Structured content is the result itself; what a server says
// beside it, other than its JSON, is the member "content" of that object. The SDK
// rounds integers above 2^53 in structured content, of which the model is told;
// those in a text are exact.
//
// A result that is an error is the error of the call, for the model to read. So is
// one that asks for input, if the client of the session does not answer itself:
// see MultiRoundTripOptions of the SDK.
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
		switch {
		case result.NeedsInput():
			return "", inputNeeded(result.InputRequests)
		case result.IsError:
			return "", resultError(result)
		}
		return content(result)
	}
	return tool.Raw(name, remote.Description, schema, call, opts...)
}

func (o *ImportOptions) meta(ctx context.Context) mcp.Meta {
	if o.Meta != nil {
		return maps.Clone(o.Meta(ctx)) // the SDK adds to it
	}
	if call, ok := tool.CallOf(ctx); ok {
		return mcp.Meta{IdempotencyKey: call.Key}
	}
	return nil
}

// roundedNote is for the model: the SDK decodes numbers as float64.
const roundedNote = "Integers above 2^53 in this result may be rounded."

// content returns a result as JSON. A text that has the JSON of the structured
// content is preferred to it, because of its digits.
func content(result *mcp.CallToolResult) (state.JSON, error) {
	structured, contents := result.StructuredContent, result.Content
	if text, ok := onlyText(contents); ok && state.JSON(text).Valid() &&
		(structured == nil || isJSONOf(text, structured)) {
		return state.JSON(text), nil
	}
	if isRounded(structured) {
		contents = append(slices.Clip(contents), &mcp.TextContent{Text: roundedNote})
	}
	var said any = contents
	if text, ok := onlyText(contents); ok {
		said = text
	}
	members, isObject := structured.(map[string]any)
	_, taken := members["content"]
	switch {
	case len(contents) == 0:
		return state.JSONOf(structured)
	case structured == nil:
		return state.JSONOf(said)
	case taken || !isObject:
		members = map[string]any{"structuredContent": structured}
	}
	members = maps.Clone(members)
	members["content"] = said
	return state.JSONOf(members)
}

// onlyText returns the text of contents that are nothing else.
func onlyText(contents []mcp.Content) (string, bool) {
	if len(contents) != 1 {
		return "", false
	}
	text, ok := contents[0].(*mcp.TextContent)
	if !ok {
		return "", false
	}
	return text.Text, true
}

// isJSONOf reports whether a text is the JSON of a value that the SDK has decoded.
func isJSONOf(text string, v any) bool {
	var said any
	return json.Unmarshal([]byte(text), &said) == nil && reflect.DeepEqual(said, v)
}

// isRounded reports whether a decoded value has a number that may have lost
// digits.
func isRounded(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) >= 1<<53
	case []any:
		return slices.ContainsFunc(v, isRounded)
	case map[string]any:
		for _, member := range v {
			if isRounded(member) {
				return true
			}
		}
	}
	return false
}

// resultError returns the error of a result that is one: its texts, and what is
// structured and not among them.
func resultError(result *mcp.CallToolResult) error {
	var lines []string
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, text.Text)
		}
	}
	says := func(text string) bool { return isJSONOf(text, result.StructuredContent) }
	if result.StructuredContent != nil && !slices.ContainsFunc(lines, says) {
		if text, err := state.JSONOf(result.StructuredContent); err == nil {
			lines = append(lines, string(text))
		}
	}
	if len(lines) == 0 {
		return errors.New("the tool failed without a text")
	}
	return errors.New(strings.Join(lines, "\n"))
}

// inputNeeded returns the error of a call that the server has not made.
func inputNeeded(requests mcp.InputRequestMap) error {
	text := "not run: the server asks for input"
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		if form, ok := requests[id].(*mcp.ElicitParams); ok {
			text += ": " + form.Message
		}
	}
	return errors.New(text)
}

package provider

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// Tool is a tool that a request offers to the model.
type Tool struct {
	Name        string
	Description string
	Schema      state.JSON // of the input: a JSON Schema, or empty

	// Extra is an object of further members, or empty. Those that a format has
	// for a tool, such as cache_control for Anthropic and strict for OpenAI, are
	// sent in it. Besides, formats keep what they have read here, as in messages,
	// each in the member named after it. A tool that only one provider has, such
	// as its search, is there as a whole. What another format does not have is
	// left out and reported.
	Extra state.JSON
}

// Tools returns the tools of a request for tools of another type, such as
// *tool.Tool.
func Tools[T interface {
	Name() string
	Description() string
	Schema() state.JSON
}](tools []T) []Tool {
	offered := make([]Tool, len(tools))
	for i, t := range tools {
		offered[i] = Tool{Name: t.Name(), Description: t.Description(), Schema: t.Schema()}
	}
	return offered
}

// toolsOf returns what the format has read as tools.
func (f *Format) toolsOf(decoded []codec.Tool) []Tool {
	var tools []Tool
	for _, t := range decoded {
		tool := Tool{Name: t.Name, Description: t.Description, Schema: state.JSON(t.Schema)}
		if len(t.Kept) > 0 {
			tool.Extra = state.JSON(jsontext.Object{}.With(f.mark, t.Kept.JSON()).JSON())
		}
		tools = append(tools, tool)
	}
	return tools
}

// offer returns the tools for the format to write, nil for none.
func (f *Format) offer(tools []Tool, omit func(what string)) ([]codec.Tool, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	own := f.codec.OwnMembers(codec.TypeOffered)
	offered := make([]codec.Tool, 0, len(tools))
	for i, t := range tools {
		extra, err := f.readExtra(t.Extra)
		if err != nil {
			return nil, inTool(i, err)
		}
		one := codec.Tool{Name: t.Name, Description: t.Description, Schema: codec.ValueOrNil(t.Schema), Kept: extra.Object(f.mark)}
		switch {
		case one.Item() != nil:
		case isForeignItem(extra):
			omit("tool " + describeTool(i, t))
			continue
		case t.Name == "":
			return nil, inTool(i, f.newError("$.name", "want a name, got none"))
		}
		if err := f.checkSchema(t.Schema); err != nil {
			return nil, inTool(i, err)
		}
		for _, m := range extra {
			if slices.Contains(own, m.Name) {
				one.Own = append(one.Own, m)
			}
		}
		for _, member := range codec.OmittedOfTool(extra, f.mark, own) {
			omit("member " + member + " of tool " + describeTool(i, t))
		}
		offered = append(offered, one)
	}
	return offered, nil
}

// readExtra checks what formats keep of a tool.
func (f *Format) readExtra(extra state.JSON) (jsontext.Object, error) {
	if extra == "" {
		return nil, nil
	}
	return f.readObject([]byte(extra))
}

// checkSchema checks that a schema is an object.
func (f *Format) checkSchema(schema state.JSON) error {
	if schema == "" {
		return nil
	}
	_, err := f.readObject([]byte(schema))
	return err
}

// isForeignItem reports whether a tool is one that only another format has.
func isForeignItem(extra jsontext.Object) bool {
	for _, m := range extra {
		if extra.Object(m.Name).Get(origin.Item) != nil {
			return true
		}
	}
	return false
}

// describeTool names a tool.
func describeTool(i int, t Tool) string {
	if t.Name == "" {
		return fmt.Sprint(i)
	}
	return fmt.Sprintf("%.64q", t.Name)
}

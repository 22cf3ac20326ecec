package sdks

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	openaiSDK    = "github.com/openai/openai-go/v3"
	anthropicSDK = "github.com/anthropics/anthropic-sdk-go"
	geminiSDK    = "google.golang.org/genai"
)

// sdkTypes says where the SDKs have the types of which package provider has a row:
// in a union, in constants of a type, in the members of a struct, or in the comment
// at a field ("Any of …").
var sdkTypes = []struct {
	rows, kinds  string // the file of the rows, and the kinds of rows
	module, file string
	names        string
}{
	{"openai_chat", "item", openaiSDK, "chatcompletion.go", "ChatCompletionMessageParamUnion"},
	{"openai_chat", "part", openaiSDK, "chatcompletion.go", "ChatCompletionContentPartUnionParam ChatCompletionAssistantMessageParamContentArrayOfContentPartUnion"},
	{"openai_chat", "member", openaiSDK, "chatcompletion.go", "ChatCompletionAssistantMessageParam ChatCompletionMessage"},
	{"openai_chat", "call", openaiSDK, "chatcompletion.go", "ChatCompletionMessageToolCallUnionParam ChatCompletionMessageToolCallUnion"},
	{"openai_chat", "delta", openaiSDK, "chatcompletion.go", "ChatCompletionChunkChoiceDelta"},
	{"openai_chat", "stop", openaiSDK, "chatcompletion.go", "ChatCompletionChoice.FinishReason ChatCompletionChunkChoice.FinishReason"},

	{"openai_responses", "item", openaiSDK, "responses/response.go", "ResponseInputItemUnion ResponseInputItemUnionParam ResponseItemUnion ResponseOutputItemUnion"},
	{"openai_responses", "item", openaiSDK, "betaresponse.go", "BetaResponseInputItemUnion BetaResponseItemUnion BetaResponseOutputItemUnion"},
	{"openai_responses", "part", openaiSDK, "responses/response.go", "ResponseInputContentUnion ResponseOutputMessageContentUnion ResponseContentPartAddedEventPartUnion ResponseFunctionCallOutputItemUnion ResponseOutputTextAnnotationUnion"},
	{"openai_responses", "part", openaiSDK, "betaresponse.go", "BetaResponseInputContentUnion BetaResponseOutputMessageContentUnion BetaResponseInputItemAgentMessageContentUnion"},
	{"openai_responses", "delta event", openaiSDK, "responses/response.go", "ResponseStreamEventUnion"},
	{"openai_responses", "delta event", openaiSDK, "betaresponse.go", "BetaResponseStreamEventUnion"},
	{"openai_responses", "stop", openaiSDK, "responses/response.go", "ResponseStatus ResponseIncompleteDetails.Reason"},

	{"anthropic", "item", anthropicSDK, "message.go", "MessageParamRole"},
	{"anthropic", "item", anthropicSDK, "betamessage.go", "BetaMessageParamRole"},
	{"anthropic", "part", anthropicSDK, "message.go", "ContentBlockParamUnion ContentBlockUnion ContentBlockStartEventContentBlockUnion ToolResultBlockParamContentUnion"},
	{"anthropic", "part", anthropicSDK, "betamessage.go", "BetaContentBlockParamUnion BetaContentBlockUnion BetaRawContentBlockStartEventContentBlockUnion BetaToolResultBlockParamContentUnion"},
	{"anthropic", "source", anthropicSDK, "message.go", "ImageBlockParamSourceUnion DocumentBlockParamSourceUnion"},
	{"anthropic", "source", anthropicSDK, "betamessage.go", "BetaImageBlockParamSourceUnion BetaRequestDocumentBlockSourceUnionParam"},
	{"anthropic", "citation", anthropicSDK, "message.go", "TextCitationParamUnion CitationsDeltaCitationUnion"},
	{"anthropic", "citation", anthropicSDK, "betamessage.go", "BetaTextCitationParamUnion BetaCitationsDeltaCitationUnion"},
	{"anthropic", "delta", anthropicSDK, "message.go", "RawContentBlockDeltaUnion"},
	{"anthropic", "delta", anthropicSDK, "betamessage.go", "BetaRawContentBlockDeltaUnion"},
	{"anthropic", "event", anthropicSDK, "message.go", "MessageStreamEventUnion"},
	{"anthropic", "event", anthropicSDK, "betamessage.go", "BetaRawMessageStreamEventUnion"},
	{"anthropic", "stop", anthropicSDK, "message.go", "StopReason"},
	{"anthropic", "stop", anthropicSDK, "betamessage.go", "BetaStopReason"},

	{"gemini", "item", geminiSDK, "types.go", "Role*"},
	{"gemini", "part", geminiSDK, "types.go", "Part"},
	{"gemini", "response_part", geminiSDK, "types.go", "FunctionResponsePart"},
	{"gemini", "delta", geminiSDK, "types.go", "PartialArg"},
	{"gemini", "stop", geminiSDK, "types.go", "FinishReason"},
	{"gemini", "block", geminiSDK, "types.go", "BlockedReason"},
}

// Package provider has a row for each type of the SDKs, which says what becomes of it
// and is tested there. A newer SDK shows its new types here, by their names.
func TestTypesOfSDKs(t *testing.T) {
	sources := map[string]*source{}
	has := map[string]map[string]bool{} // the types that the SDKs have, by file and kinds
	kindsOf := map[string]string{}      // of a kind of row, by file and kind
	for _, s := range sdkTypes {
		path := s.module + " " + s.file
		if sources[path] == nil {
			sources[path] = parseSource(t, s.module, s.file)
		}
		group := s.rows + " " + s.kinds
		if has[group] == nil {
			has[group] = map[string]bool{}
		}
		for kind := range strings.FieldsSeq(s.kinds) {
			kindsOf[s.rows+" "+kind] = group
		}
		for name := range strings.FieldsSeq(s.names) {
			types := sources[path].types(name)
			require.NotEmpty(t, types, "%s has no %s", path, name)
			for _, typ := range types {
				has[group][typ] = true
			}
		}
	}

	rows := map[string]map[string]bool{}
	for group := range has {
		rows[group] = map[string]bool{}
	}
	for _, file := range []string{"openai_chat", "openai_responses", "anthropic", "gemini"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "provider", "testdata", "types", file+".json"))
		require.NoError(t, err)
		var read []struct{ Kind, Type, Since string }
		require.NoError(t, json.Unmarshal(data, &read))
		for _, row := range read {
			group := kindsOf[file+" "+row.Kind]
			require.NotEmpty(t, group, "%s: kind %s", file, row.Kind)
			rows[group][row.Type] = true
			if row.Since == "" && !has[group][row.Type] {
				t.Errorf("%s: the row of %s %s says of no source, and the SDK does not have it", file, row.Kind, row.Type)
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(has)) {
		for _, typ := range slices.Sorted(maps.Keys(has[group])) {
			if !rows[group][typ] {
				t.Errorf("%s: %s has no row", group, typ)
			}
		}
		t.Logf("%s: %d types", group, len(has[group]))
	}
}

// source is a file of an SDK.
type source struct{ *ast.File }

// parseSource parses a file of a module at the version that this module requires.
func parseSource(t *testing.T, module, file string) *source {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	require.NoError(t, err)
	path := filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(file))
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return &source{parsed}
}

// types returns the types of a union, the constants of a type or those whose names
// begin so (Role*), the members of a struct, or the values in the comment at a field.
func (s *source) types(name string) []string {
	typ, field, ofField := strings.Cut(name, ".")
	var found, members []string
	for _, d := range s.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Name.Name == "AsAny" && d.Recv != nil && receiver(d) == name:
				found = append(found, cases(d)...)
			case d.Name.Name == "init":
				found = append(found, discriminators(d, name)...)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					found = append(found, constants(spec, name)...)
				case *ast.TypeSpec:
					if of, ok := spec.Type.(*ast.StructType); ok && spec.Name.Name == typ {
						members = append(members, membersOf(of, field)...)
					}
				}
			}
		}
	}
	if found == nil || ofField {
		return members
	}
	return found
}

// receiver returns the type of a method.
func receiver(d *ast.FuncDecl) string {
	if id, ok := d.Recv.List[0].Type.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// cases returns the texts of the cases in a function.
func cases(d *ast.FuncDecl) (texts []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				texts = append(texts, literal(e)...)
			}
		}
		return true
	})
	return texts
}

// discriminators returns the types of a union that is registered in a function.
func discriminators(d *ast.FuncDecl, union string) (texts []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if of, ok := call.Fun.(*ast.IndexExpr); ok {
			if id, ok := of.Index.(*ast.Ident); ok && id.Name == union {
				for _, variant := range call.Args[1:] {
					if v, ok := variant.(*ast.CallExpr); ok && len(v.Args) == 1 {
						texts = append(texts, literal(v.Args[0])...)
					}
				}
			}
		}
		return true
	})
	return texts
}

// constants returns the values of constants that are of a type, or without one have
// names that begin so.
func constants(spec *ast.ValueSpec, name string) (texts []string) {
	id, typed := spec.Type.(*ast.Ident)
	prefix, byName := strings.CutSuffix(name, "*")
	if typed && id.Name == name || byName && spec.Type == nil && strings.HasPrefix(spec.Names[0].Name, prefix) {
		for _, value := range spec.Values {
			texts = append(texts, literal(value)...)
		}
	}
	return texts
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// membersOf returns the names of the members of a struct, or the values of one.
func membersOf(of *ast.StructType, field string) (names []string) {
	for _, f := range of.Fields.List {
		if len(f.Names) == 0 || f.Tag == nil {
			continue
		}
		if field == "" {
			tag, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(f.Tag.Value, "`"), `json:"`), `"`)
			if name, _, _ := strings.Cut(tag, ","); name != "-" {
				names = append(names, name)
			}
		} else if f.Names[0].Name == field {
			_, values, _ := strings.Cut(f.Doc.Text(), "Any of ")
			for _, value := range quoted.FindAllStringSubmatch(values, -1) {
				names = append(names, value[1])
			}
		}
	}
	return names
}

// literal returns the value of a string, none for another expression.
func literal(e ast.Expr) []string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, err := strconv.Unquote(lit.Value)
		if err == nil {
			return []string{text}
		}
	}
	return nil
}

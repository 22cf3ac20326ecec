package tool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// The user is injected: the model neither sees nor fills in that parameter.
func ExampleFrom() {
	user := &state.Field[string]{Name: "user_name"}
	st := state.New(state.MustSchema(user))
	_ = user.Set(st, "Ada")

	type arguments struct {
		Query string `json:"query" jsonschema:"what to look for"`
		User  string `json:"user_context"`
	}
	search := tool.Must(tool.New("search_documents", "Search the documents.",
		func(_ context.Context, in arguments) (string, error) {
			return fmt.Sprintf("found for %q, asked by %s", in.Query, in.User), nil
		},
		tool.From(user, "user_context")))

	fmt.Println(search.Schema())
	fmt.Println(search.Call(context.Background(), st, `{"query":"returns"}`))
	_, err := search.Call(context.Background(), st, `{"query":"returns","user_context":"Mallory"}`)
	fmt.Println(err)
	// Output:
	// {"type":"object","properties":{"query":{"type":"string","description":"what to look for"}},"required":["query"],"additionalProperties":false}
	// "found for \"returns\", asked by Ada" <nil>
	// tool "search_documents": bad arguments:
	// - "user_context": is not an argument, it is filled in by the program
}

// A retriever writes three keys of its result to three fields, as one version.
func ExampleTo() {
	documents := &state.Field[[]string]{Name: "documents"}
	count := &state.Field[int]{Name: "result_count"}
	last := &state.Field[string]{Name: "last_query"}
	st := state.New(state.MustSchema(documents, count, last))

	type query struct {
		Query string `json:"query"`
	}
	type found struct {
		Documents []string `json:"documents"`
		Count     int      `json:"count"`
		Query     string   `json:"query"`
	}
	retrieve := tool.Must(tool.New("retrieve", "Find documents.",
		func(_ context.Context, in query) (found, error) {
			docs := []string{"returns.md", "refunds.md"}
			return found{docs, len(docs), in.Query}, nil
		},
		tool.To(documents, "documents"), tool.To(count, "count"), tool.To(last, "query")))

	_, err := retrieve.Call(context.Background(), st, `{"query":"Python"}`)
	fmt.Println(documents.GetOr(st, nil), count.GetOr(st, 0), last.GetOr(st, ""), st.Version(), err)
	// Output: [returns.md refunds.md] 2 Python 1 <nil>
}

// Without a key the whole result goes to the field.
func ExampleTo_wholeResult() {
	info := &state.Field[map[string]string]{Name: "user_info"}
	st := state.New(state.MustSchema(info))

	lookup := tool.Must(tool.New("get_user_info", "Look the user up.",
		func(context.Context, struct{}) (map[string]string, error) {
			return map[string]string{"name": "Ada", "email": "ada@example.com"}, nil
		},
		tool.To(info, "")))

	_, err := lookup.Call(context.Background(), st, "")
	fmt.Println(info.GetOr(st, nil), err)
	// Output: map[email:ada@example.com name:Ada] <nil>
}

// A tool may read what another tool, or an earlier call of the same tool, has
// written.
func ExampleNew() {
	name := &state.Field[string]{Name: "user_name"}
	documents := &state.Field[[]string]{Name: "documents"}
	st := state.New(state.MustSchema(name, documents))
	_ = name.Set(st, "Ada")

	type arguments struct {
		Query string   `json:"query"`
		User  string   `json:"user"`
		Known []string `json:"known,omitempty"` // left out while the field is unset
	}
	type found struct {
		Documents []string `json:"documents"`
	}
	search := tool.Must(tool.New("search", "Search for new documents.",
		func(_ context.Context, in arguments) (found, error) {
			return found{[]string{fmt.Sprintf("%s for %s, %d known", in.Query, in.User, len(in.Known))}}, nil
		},
		tool.From(name, "user"), tool.From(documents, "known"), tool.To(documents, "documents")))

	for _, args := range []state.JSON{`{"query":"returns"}`, `{"query":"refunds"}`} {
		if _, err := search.Call(context.Background(), st, args); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(strings.Join(documents.GetOr(st, nil), "\n"))
	fmt.Println(search.Reads(), search.Writes())
	// Output:
	// returns for Ada, 0 known
	// refunds for Ada, 1 known
	// [user_name documents] [documents]
}

// A function that needs more than bindings can express is given the state itself.
func ExampleNewStateful() {
	notes := &state.Field[[]string]{Name: "notes", Owner: "support"}
	st := state.New(state.MustSchema(state.Team{"support": nil}, notes))

	type arguments struct {
		Note string `json:"note"`
	}
	save := tool.Must(tool.NewStateful("save_note", "Save a note unless it is there.",
		func(_ context.Context, st *state.State, in arguments) (int, error) {
			known := notes.GetOr(st, nil)
			if slices.Contains(known, in.Note) {
				return len(known), nil
			}
			return len(known) + 1, notes.Set(st, []string{in.Note})
		}))

	support := st.As("support").WithCause("call_1")
	for range 2 {
		fmt.Println(save.Call(context.Background(), support, `{"note":"wants a refund"}`))
	}
	for c := range st.Changes(0) {
		fmt.Println(c.Agent, c.Cause, c.Field, c.Value)
	}
	fmt.Println(save.Schema())
	// Output:
	// 1 <nil>
	// 1 <nil>
	// support call_1 notes [wants a refund]
	// {"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}
}

// The handler of the field drops the documents that are already there.
func ExampleTo_deduplicate() {
	documents := &state.Field[[]string]{Name: "documents", Handler: state.Union[[]string]()}
	st := state.New(state.MustSchema(documents))

	type arguments struct {
		IDs []string `json:"ids"`
	}
	fetch := tool.Must(tool.New("fetch", "Fetch documents.",
		func(_ context.Context, in arguments) ([]string, error) { return in.IDs, nil },
		tool.To(documents, "")))

	for _, args := range []state.JSON{`{"ids":["a","b"]}`, `{"ids":["b","c"]}`} {
		if _, err := fetch.Call(context.Background(), st, args); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(documents.GetOr(st, nil))
	// Output: [a b c]
}

// With a handler for this tool only, its result replaces the results of others.
func ExampleOutput_With() {
	documents := &state.Field[[]string]{Name: "documents"}
	st := state.New(state.MustSchema(documents))
	_ = documents.Set(st, []string{"stale.md"})

	refresh := tool.Must(tool.New("refresh", "Find the documents again.",
		func(context.Context, struct{}) ([]string, error) { return []string{"fresh.md"}, nil },
		tool.To(documents, "").With(state.Replace[[]string]())))

	_, err := refresh.Call(context.Background(), st, "")
	fmt.Println(documents.GetOr(st, nil), err)
	// Output: [fresh.md] <nil>
}

// The files of a coding agent are in the state. Each call sets some of them.
func ExampleOutput_With_writeFiles() {
	files := &state.Field[map[string]string]{Name: "files"}
	st := state.New(state.MustSchema(files))

	type file struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	type arguments struct {
		Files []file `json:"files"`
	}
	write := tool.Must(tool.New("write_files", "Write files with a path and a content.",
		func(_ context.Context, in arguments) (map[string]string, error) {
			written := map[string]string{}
			for _, f := range in.Files {
				written[f.Path] = f.Content
			}
			return written, nil
		},
		tool.To(files, "").With(state.MergeMap[map[string]string]())))

	for _, args := range []state.JSON{
		`{"files":[{"path":"main.go","content":"package main"},{"path":"go.mod","content":"module a"}]}`,
		`{"files":[{"path":"go.mod","content":"module b"}]}`,
	} {
		if _, err := write.Call(context.Background(), st, args); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(files.GetOr(st, nil))
	// Output: map[go.mod:module b main.go:package main]
}

// Raw takes tools of other systems, whose schema is data. The bindings may be data
// as well.
func ExampleRaw() {
	st := state.New(nil)
	_ = st.KV().Set("token", "tok-1")

	fetch := tool.Must(tool.Raw("fetch", "Fetch a page.",
		`{"type":"object","properties":{"url":{"type":"string"},"token":{"type":"string"}},"required":["url","token"]}`,
		func(_ context.Context, args state.JSON) (state.JSON, error) {
			return `{"status":200,"body":"Hello"}`, nil
		},
		tool.FromName("token", "token"), tool.ToName("page", "body")))

	fmt.Println(fetch.Schema())
	fmt.Println(fetch.Call(context.Background(), st, `{"url":"https://example.com"}`))
	page, _ := st.KV().Get("page")
	fmt.Println(page)
	// Output:
	// {"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}
	// {"status":200,"body":"Hello"} <nil>
	// Hello
}

// The model maintains the fields of an agent.
func ExampleUpdater() {
	schema := state.MustSchema(
		state.Team{"support": {"billing"}},
		&state.Field[string]{Name: "order_id", Owner: "support",
			Description: "The order the customer asks about.", UpdateRules: "Never guess."},
		&state.Field[float64]{Name: "amount", Owner: "support"},
		&state.Field[string]{Name: "payment_token", Owner: "billing"},
	)
	update, err := tool.Updater(schema, "support")
	fmt.Println(err)
	fmt.Println(update.Schema())

	st := state.New(schema)
	fmt.Println(update.Call(context.Background(), st, `{"order_id":"#W2378156","amount":12.5}`))
	fmt.Println(update.Call(context.Background(), st, `{"amount":null}`))
	_, err = update.Call(context.Background(), st, `{"order_id":7,"amount":"lots","payment_token":"x"}`)
	fmt.Println(err)
	var bad *tool.ArgumentError
	fmt.Println(errors.As(err, &bad), st.KV().All())
	// Output:
	// <nil>
	// {"type":"object","properties":{"order_id":{"type":["string","null"],"description":"The order the customer asks about.\nNever guess."},"amount":{"type":["number","null"]}},"additionalProperties":false}
	// {"updated":["order_id","amount"]} <nil>
	// {"updated":["amount"]} <nil>
	// tool "update_state": bad arguments:
	// - "payment_token": is unknown, there are "order_id", "amount"
	// - "order_id": want string, got number
	// - "amount": want number, got string
	// true map[order_id:#W2378156]
}

// A task with tasks: the schema of the parameter refers to itself.
type task struct {
	Name string `json:"name"`
	Sub  []task `json:"sub"`
}

func ExampleNew_recursive() {
	type in struct {
		Plan task `json:"plan"`
	}
	plan := tool.Must(tool.New("plan", "", func(_ context.Context, in in) (int, error) { return len(in.Plan.Sub), nil }))
	fmt.Println(strings.Contains(string(plan.Schema()), `"$ref":"#/$defs/task"`))
	n, err := plan.Call(context.Background(), state.New(nil), `{"plan":{"name":"move","sub":[{"name":"pack","sub":[]},{"name":"drive","sub":[]}]}}`)
	fmt.Println(n, err)
	// Output:
	// true
	// 2 <nil>
}

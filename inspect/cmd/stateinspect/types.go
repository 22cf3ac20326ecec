package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/view"
)

// printTypes prints the fields of a schema that an agent may read, or all if agent
// is "", as a type of TypeScript: the state that a page of package aguistate has.
// Secrets are left out, and what the agent may not write is readonly.
func printTypes(s *state.Schema, agent string, out io.Writer) error {
	if s == nil {
		return errors.New("the store has no schema: use -schema")
	}
	st := state.New(s)
	if agent != "" {
		st = st.As(agent)
	}
	fmt.Fprintln(out, "export interface State {")
	for _, f := range st.Fields() {
		if f.Secret || f.Reference || f.Name == state.Messages.Name {
			continue
		}
		if f.Description != "" {
			text := strings.ReplaceAll(view.VisibleLines(f.Description), "*/", "*\\/")
			fmt.Fprintf(out, "  /** %s */\n", strings.Join(strings.Fields(text), " "))
		}
		mode := ""
		if !f.Writable {
			mode = "readonly "
		}
		fmt.Fprintf(out, "  %s%s?: %s;\n", mode, propertyName(f.Name), typeScript(f.GoType))
	}
	_, err := fmt.Fprint(out, "  readonly $version: string;\n}\n")
	return err
}

// propertyName returns a name as TypeScript has it.
func propertyName(name string) string {
	for i, r := range name {
		isLetter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !isLetter && (i == 0 || r < '0' || r > '9') {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}

// typeScript returns the type of values of a schema that was read as JSON.
func typeScript(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[state.Time]():
		return "string"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice:
		return typeScript(t.Elem()) + "[]"
	case t.Kind() == reflect.Map:
		return "Record<string, " + typeScript(t.Elem()) + ">"
	}
	return "unknown"
}

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestObserve(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"Name":"invoke_workflow desk"`, `"Name":"execute_tool refund"`, `"Name":"chat gpt-5"`, `"Name":"agentstate.queue.wait"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in:\n%s", want, out.String())
		}
	}
	for _, never := range []string{"tok-4711", "Where is", "ann\"", "shop is closed"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("%q is exported", never)
		}
	}
}

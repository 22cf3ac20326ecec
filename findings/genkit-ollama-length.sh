#!/usr/bin/env bash
# The Ollama plugin of Genkit says that each answer has ended well: an answer that Ollama
# has cut at its limit of tokens ("done_reason":"length") has the finish reason "stop". The guess was
# "length". So no program on Genkit can tell half an answer of Ollama from a whole one.
#
# Seen on 2026-11-27, with Go 1.26 and github.com/firebase/genkit/go v1.4.0.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w -- "$folder"; rm -rf -- "$folder"' EXIT
cd -- "$folder"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>get.log && go get github.com/firebase/genkit/go@v1.4.0 2>>get.log || {
	cat get.log >&2
	exit 1
}
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/ollama"
)

func main() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, `{"model":"m","created_at":"2026-11-27T12:00:00Z","message":{"role":"assistant","content":"The first half of"},"done":true,"done_reason":"length","prompt_eval_count":5,"eval_count":4}`)
	}))
	defer srv.Close()
	ctx := context.Background()
	plugin := &ollama.Ollama{ServerAddress: srv.URL}
	g := genkit.Init(ctx, genkit.WithPlugins(plugin))
	m := plugin.DefineModel(g, ollama.ModelDefinition{Name: "m", Type: "chat"}, &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true}})
	resp, err := genkit.Generate(ctx, g, ai.WithModel(m), ai.WithPrompt("Say it."))
	if err != nil {
		panic(err)
	}
	fmt.Printf("finish reason %q, text %q\n", resp.FinishReason, resp.Text())
}
END
want=$(
	cat <<'END'
finish reason "stop", text "The first half of"
END
)
got=$(go run . 2>run.log) || {
	cat run.log >&2
	exit 1
}
echo "$got"
[ "$got" = "$want" ] || {
	printf 'it has changed: it was\n%s\n' "$want" >&2
	exit 1
}

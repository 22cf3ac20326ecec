#!/usr/bin/env bash
# langchaingo loses a whole answer of Anthropic in which the provider has searched the web: its client knows
# three types of blocks, and a block of another type makes an error of the call, although the text that the
# program wants stands beside it. The guess was that it leaves out what it does not know, as openai-go,
# anthropic-sdk-go and genai do. The tokens of the answer are paid for, and asking again brings the same.
#
# Seen on 2026-11-28, with Go 1.26 and github.com/tmc/langchaingo v0.1.14.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w -- "$folder"; rm -rf -- "$folder"' EXIT
cd -- "$folder"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>get.log && go get github.com/tmc/langchaingo/llms/anthropic@v0.1.14 2>>get.log || {
	cat get.log >&2
	exit 1
}
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
)

const search = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"weather"}},` +
	`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},`

func main() {
	for _, blocks := range []string{"", search} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`+blocks+
				`{"type":"text","text":"It rains."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`)
		}))
		model, err := anthropic.New(anthropic.WithToken("k"), anthropic.WithBaseURL(srv.URL), anthropic.WithModel("m"))
		if err != nil {
			panic(err)
		}
		answer, err := llms.GenerateFromSinglePrompt(context.Background(), model, "How is the weather?")
		fmt.Printf("with a search: %v, answer %q, an error: %v\n", blocks != "", answer, err != nil)
		srv.Close()
	}
}
END
want=$(
	cat <<'END'
with a search: false, answer "It rains.", an error: false
with a search: true, answer "", an error: true
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

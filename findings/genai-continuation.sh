#!/usr/bin/env bash
# A stream of genai may be several requests: after a chunk with the finish reason CONTINUATION
# and a token, the SDK sends the request again by itself, with the same contents and the token, and the
# program sees one stream without that reason. The guess was that the program is given CONTINUATION and
# goes on itself. So a program that counts, records or changes requests by an http.RoundTripper sees two,
# of which the second has no part of the answer in its contents.
#
# Seen on 2026-11-27, with Go 1.26 and google.golang.org/genai v1.77.0.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w -- "$folder"; rm -rf -- "$folder"' EXIT
cd -- "$folder"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>get.log && go get google.golang.org/genai@v1.77.0 2>>get.log || {
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
	"strings"

	"google.golang.org/genai"
)

func main() {
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("request %d: token %v, contents %d\n", requests, strings.Contains(string(body), "ontinuationToken"), strings.Count(string(body), `"role"`))
		w.Header().Set("Content-Type", "text/event-stream")
		if requests == 1 {
			fmt.Fprint(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"one "}]},"finishReason":"CONTINUATION","continuationToken":"dG9rZW4="}]}`+"\n\n")
			return
		}
		fmt.Fprint(w, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}]}`+"\n\n")
	}))
	defer srv.Close()
	ctx := context.Background()
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: srv.URL}})
	if err != nil {
		panic(err)
	}
	for resp, err := range client.Models.GenerateContentStream(ctx, "m", genai.Text("count"), nil) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("chunk %q, finish reason %q\n", resp.Text(), resp.Candidates[0].FinishReason)
	}
}
END
want=$(
	cat <<'END'
request 1: token false, contents 1
chunk "one ", finish reason ""
request 2: token true, contents 1
chunk "two", finish reason "STOP"
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

#!/usr/bin/env bash
# DBOS finds a workflow by the name that the compiler gave its Go function. Of two closures of one constructor, of
# which the first is registered, with a name of its own, the second cannot be started in a usual build: there is no
# such workflow. In a build without inlining (-gcflags=-l, as for a debugger), starting the second runs the first,
# and nobody is told. The guess was that the name of WithWorkflowName counts, and that both builds do the same.
#
# Seen on 2026-11-28, with Go 1.26 and github.com/dbos-inc/dbos-transact-golang v1.8.0.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w -- "$folder"; rm -rf -- "$folder"' EXIT
cd -- "$folder"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>get.log && go get github.com/dbos-inc/dbos-transact-golang@v1.8.0 2>>get.log || {
	cat get.log >&2
	exit 1
}
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

func greeter(word string) dbos.Workflow[string, string] {
	return func(_ dbos.Context, name string) (string, error) { return word + ", " + name, nil }
}

func main() {
	ctx, err := dbos.NewContext(context.Background(), dbos.Config{AppName: "x", DatabaseURL: "sqlite:" + os.Args[1], Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	hello := greeter("Hello")
	dbos.RegisterWorkflow(ctx, hello, dbos.WithWorkflowName("hello"))
	if err := dbos.Launch(ctx); err != nil {
		panic(err)
	}
	for _, workflow := range []dbos.Workflow[string, string]{hello, greeter("Goodbye")} {
		handle, err := dbos.RunWorkflow(ctx, workflow, "Ann")
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println(handle.GetResult())
	}
}
GO
want=$(
	cat <<'END_OF_WANT'
a usual build
Hello, Ann <nil>
error: DBOS Error NonExistentWorkflow: workflow main.main.greeter.func3 does not exist
a build without inlining
Hello, Ann <nil>
Hello, Ann <nil>
END_OF_WANT
)
got=$(
	echo "a usual build"
	go run . usual.db 2>run.log
	echo "a build without inlining"
	go run -gcflags=-l . plain.db 2>>run.log
) || {
	cat run.log >&2
	exit 1
}
echo "$got"
[ "$got" = "$want" ] || {
	printf 'it has changed: it was\n%s\n' "$want" >&2
	exit 1
}

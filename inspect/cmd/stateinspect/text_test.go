package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// varying matches the parts of the output that differ between runs.
var varying = regexp.MustCompile(`\d{2,} bytes|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

func Example() {
	dir, err := os.MkdirTemp("", "stateinspect")
	check(err)
	defer os.RemoveAll(dir)
	url, err := desk(dir, true)
	check(err)
	for _, args := range []string{"show -user ann", "show -user ann -at 1", "log -user ann", "diff -user ann -from 1 -to 3", "verify"} {
		var out bytes.Buffer
		fmt.Println("$ stateinspect -text", args, "sqlite:desk.db")
		check(run(context.Background(), append(strings.Fields("-text "+args), url), os.Getenv, &out, nil))
		fmt.Print(varying.ReplaceAllString(out.String(), "…"))
	}
	// Output:
	// $ stateinspect -text show -user ann sqlite:desk.db
	// "ann" at version 3, held from version 0 on
	// fields:
	// - messages (list of message) = 2 messages, in version 1 by desk
	// - order_id (string) = "#W1", in version 1 by desk
	// - card (string) = [SECRET], in version 1 by desk
	// conversation, 2 messages:
	// - user: My token is [SECRET], my card [SECRET].
	// - assistant: Yes.
	// suspended:
	// run:
	// - since …, attempt 1, held by none
	// - m2 [SECRET]: Is [SECRET] still my card?
	// queue:
	// - m3: Well? \u009b2J \u202etxt.exe
	// dead:
	// - refund: Refund it to [SECRET].
	//   given up …, attempts 1: the bank has refused [SECRET]
	// memory:
	// - name: Ann\u001b[2J, since …
	// - token: [SECRET], since …
	// settings:
	// - chat "7", platform "", debug false, MCP servers [mail]
	// $ stateinspect -text show -user ann -at 1 sqlite:desk.db
	// "ann" at version 1, held from version 0 on
	// fields:
	// - messages (list of message) = 2 messages, in version 1 by desk
	// - order_id (string) = "#W1", in version 1 by desk
	// - card (string) = [SECRET], in version 1 by desk
	// conversation, 2 messages:
	// - user: My token is [SECRET], my card [SECRET].
	// - assistant: Yes.
	// $ stateinspect -text log -user ann sqlite:desk.db
	// 3 … fail of refund: the bank has refused [SECRET]
	// 2 … update
	//   set memory name, …
	//   set memory token, …
	//   set setting mcp_servers, …
	// 1 … finish of m1 by desk
	//   edit conversation, …
	//   set field order_id, 5 bytes
	//   set field card, …
	//   set setting chat_id, 3 bytes
	// $ stateinspect -text diff -user ann -from 1 -to 3 sqlite:desk.db
	// "ann" from version 1 to 3
	// set memory name = {"value":"Ann\u001b[2J","created_at":"…"} in version 2 by host
	// set memory token = {"value":"[SECRET]","secret":true,"created_at":"…"} in version 2 by host
	// set setting mcp_servers = … in version 2 by host
	// $ stateinspect -text verify sqlite:desk.db
	// "Bob, the builder" is intact: version 1, 1 records after version 0, 1 blobs, …
	// "ann" is intact: version 3, 3 records after version 0, 5 blobs, …
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func TestTextList(t *testing.T) {
	text, err := print(t, newDesk(t, true), "-text", "list")
	require.NoError(t, err)
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `^USER +VERSION +BYTES +LAST ACTIVE +STATE$`, lines[0])
	require.Regexp(t, `^"Bob, the builder"  1 +\d+ +[-0-9T:]+Z +idle$`, lines[1])
	require.Regexp(t, `^"ann" +3 +\d+ +[-0-9T:]+Z +dead 1, waiting 1, running since [-0-9T:]+Z, attempt 1$`, lines[2])
}

// print returns what the command prints.
func print(t *testing.T, url string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append(args, url), os.Getenv, &out, nil)
	return out.String(), err
}

var modes = [][]string{
	{"-text", "list"},
	{"-text", "show", "-user", "ann"},
	{"-text", "show", "-user", "ann", "-at", "1"},
	{"-text", "log", "-user", "ann"},
	{"-text", "diff", "-user", "ann"},
	{"-text", "diff", "-user", "ann", "-from", "1", "-to", "3"},
	{"-text", "diff", "-user", "ann", "-from", "3", "-to", "1"},
	{"-text", "verify"},
	{"-text", "verify", "-user", "ann"},
	{"-text", "export", "-user", "ann"},
}

func TestTextHasNoSecrets(t *testing.T) {
	for _, published := range []bool{false, true} {
		url := newDesk(t, published)
		for _, args := range modes {
			text, err := print(t, url, args...)
			if args[1] == "export" && !published {
				require.EqualError(t, err, "an export needs a schema, which tells what is secret: use -schema")
			} else {
				require.NoError(t, err)
				require.NotEmpty(t, text)
			}
			for _, hidden := range append(secrets, "\x1b", "\u009b", "\u202e") {
				require.NotContains(t, text, hidden, args)
			}
		}
	}
}

// TestTextWithoutSchema checks that no value is shown if nothing tells which are secret.
func TestTextWithoutSchema(t *testing.T) {
	url := newDesk(t, false)
	for _, args := range modes {
		text, _ := print(t, url, args...)
		for _, value := range []string{"#W1", "Yes.", "Refund", "Ann\\u", "Hello"} {
			require.NotContains(t, text, value, args)
		}
	}
	text, err := print(t, url, "-text", "show", "-user", "ann")
	require.NoError(t, err)
	require.NotContains(t, text, "token")
	for _, name := range []string{"order_id", "card"} {
		require.Contains(t, text, name)
	}
}

func TestTextSchemaFile(t *testing.T) {
	url := newDesk(t, false)
	data, err := json.Marshal(schema)
	require.NoError(t, err)
	file := t.TempDir() + "/schema.json"
	require.NoError(t, os.WriteFile(file, data, 0o600))
	text, err := print(t, url, "-schema", file, "-text", "show", "-user", "ann")
	require.NoError(t, err)
	require.Contains(t, text, `order_id (string) = "#W1"`)
	require.Contains(t, text, "card (string) = [SECRET]")

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = print(t, url, "-schema", file, "-text", "list")
	require.ErrorContains(t, err, file)
}

func TestTextExportIsJSON(t *testing.T) {
	text, err := print(t, newDesk(t, true), "-text", "export", "-user", "ann")
	require.NoError(t, err)
	var v struct {
		User   string
		Memory map[string]struct{ Value string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	require.Equal(t, "ann", v.User)
	require.Equal(t, "Ann\x1b[2J", v.Memory["name"].Value)
	require.Equal(t, "[SECRET]", v.Memory["token"].Value)
}

func TestTextUnknownUser(t *testing.T) {
	_, err := print(t, newDesk(t, true), "-text", "show", "-user", "eve")
	require.EqualError(t, err, `there is no workspace of "eve"`)
}

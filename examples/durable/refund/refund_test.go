package main

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the program.
func TestMain(m *testing.M) {
	if os.Getenv("REFUND") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// What the README says of the program: a call waits beyond its process, is approved
// from another one, and goes on with its key in a third when that is killed.
func TestTheProgramOfTheReadme(t *testing.T) {
	dir := t.TempDir()
	program := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "REFUND=1"), os.Stderr
		return cmd
	}
	run := func(args ...string) string {
		out, err := program(args...).Output()
		require.NoError(t, err)
		return string(out)
	}

	asked := regexp.MustCompile(`^I have asked a colleague\.\n120 euros are much\. Approve it: go -C examples/durable run \./refund (\S+)\n$`)
	said := run()
	require.Regexp(t, asked, said)
	key := asked.FindStringSubmatch(said)[1]
	require.Equal(t, said, run(), "the message has an id, and is handled once")

	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	shown := func(out string) string { return strings.ReplaceAll(out, key, "ctamfgc8uOntgmb") }
	require.Contains(t, string(readme), "```\n"+shown(said)+"```\n")

	killed := program(key)
	out, err := killed.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, killed.Start())
	sending := "sending 120 euros with the key " + key + " …\n"
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, sending, line)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())

	refunded := run(key)
	require.Equal(t, sending+"Your order is refunded.\n", refunded)
	require.Contains(t, string(readme), "```\n"+shown(sending)+"^C\n"+shown(refunded)+"```\n")
	require.Equal(t, "Your order is refunded.\n", run(key))
}

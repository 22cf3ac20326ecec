package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for _, test := range []struct{ text, scheme, url, title string }{
		{"sqlite:dir/desk.db", "sqlite", "dir/desk.db", "desk.db"},
		{"postgres://u:p@host/db?sslmode=disable", "postgres", "postgres://u:p@host/db?sslmode=disable", "host/db"},
		{"postgresql://host/db", "postgres", "postgresql://host/db", "host/db"},
		{"mysql://u:p@host:3306/db", "mysql", "mysql://u:p@host:3306/db", "host:3306/db"},
		{"redis://:p@host:6379/0", "redis", "redis://:p@host:6379/0", "host:6379/0"},
		{"rediss://host:6379", "redis", "rediss://host:6379", "host:6379"},
		{"env:DESK", "mysql", "mysql://u:p@host/desk", "host/desk"},
	} {
		a, err := parseAddress(test.text, func(name string) string {
			require.Equal(t, "DESK", name)
			return "mysql://u:p@host/desk"
		})
		require.NoError(t, err, test.text)
		require.Equal(t, test.scheme, a.scheme)
		require.Equal(t, test.url, a.url)
		require.Equal(t, test.title, a.title)
	}
}

func TestUsage(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "the URL of the store is missing"},
		{"desk.db", "the scheme of the URL is not sqlite, postgres, mysql, redis or env"},
		{"http://host", "the scheme of the URL is not sqlite, postgres, mysql, redis or env"},
		{"sqlite:", "the sqlite URL has no path"},
		{"env:STATEINSPECT_NOT_SET", `the environment variable "STATEINSPECT_NOT_SET" is not set`},
		{"sqlite:a sqlite:b", "want one URL, after the flags, and got 2 arguments"},
		{"-text shwo sqlite:a", `-text "shwo": want list, show, log, diff, verify or export`},
		{"-text show sqlite:a", "-text show needs -user"},
		{"-bogus sqlite:a", "flag provided but not defined: -bogus"},
		{"-at x sqlite:a", `invalid value "x" for flag -at: parse error`},
	} {
		err := run(t.Context(), strings.Fields(test.args), os.Getenv, nil, nil)
		require.EqualError(t, err, test.want+`; "stateinspect help" shows how to call it`)
		require.ErrorIs(t, err, errUsage)
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"help", "-h", "-help"} {
		var out strings.Builder
		require.Error(t, run(t.Context(), []string{arg}, os.Getenv, &out, nil))
		require.Contains(t, out.String(), "usage: stateinspect")
		require.Contains(t, out.String(), "-token-file")
	}
}

func TestMakesNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.db")
	_, err := print(t, "sqlite:"+file, "-text", "list")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, file)
}

// TestPasswords opens stores at addresses where nothing answers, and ones that cannot
// be parsed.
func TestPasswords(t *testing.T) {
	for _, url := range []string{
		"postgres://user:hunter2@127.0.0.1:1/db",
		"postgres://127.0.0.1:1/db?user=user&password=hunter2",
		"postgres://user:hunter2@127.0.0.1:1/db?sslmode=bogus",
		"postgres://user:hunter2%zz@127.0.0.1:1/db",
		"postgres://user:hunter2@127.0.0.1:port/db",
		"mysql://user:hunter2@127.0.0.1:1/db",
		"mysql://user:hunter2%zz@127.0.0.1:1/db",
		"mysql://user:hunter2@127.0.0.1:1/db?bogus",
		"redis://:hunter2@127.0.0.1:1/0",
		"redis://:hunter2@127.0.0.1:1/hunter2",
		"redis://:hunter2%zz@127.0.0.1:1/0",
		"amqp://user:hunter2@127.0.0.1:1",
		"hunter2",
	} {
		t.Setenv("DESK", url)
		for _, argument := range []string{url, "env:DESK"} {
			text, err := print(t, argument, "-text", "list")
			require.Error(t, err, url)
			for err := err; err != nil; err = errors.Unwrap(err) {
				require.NotContains(t, err.Error(), "hunter2")
			}
			require.Empty(t, text)
		}
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	for _, test := range []struct{ text, want string }{
		{"", ": no key"},
		{"# nothing\n\n", ": no key"},
		{"k1\n", ": line 1: want an id and a secret in base64"},
		{"\nk1 hunter2! \n", ": line 2: the secret of the key is not base64"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
		_, err := readKeys(file)
		require.EqualError(t, err, file+test.want)
	}
	require.NoError(t, os.WriteFile(file, []byte("# keys\nk2 AAAA\nk1\tAQEB\n"), 0o600))
	keys, err := readKeys(file)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	require.Equal(t, "k2", keys[0].ID)
	require.Equal(t, []byte{1, 1, 1}, keys[1].Secret)
}

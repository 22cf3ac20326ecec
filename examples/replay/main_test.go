package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	run    = `{"traj":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}`
	broken = `{"traj":[{"role":"user"`
	other  = `{"exchanges":[]}`
)

func TestReplay(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string // in a folder
		given []string          // the files to name, or the folder if there are none
		ok    bool
		out   []string
		not   []string
	}{
		{"a folder of runs", map[string]string{"a.json": run, "b.traj": "[" + run + "," + run + "]"}, nil, true,
			[]string{"a.json", "total of 2 files", "verified", "ok"}, []string{"skipped", "failure", "FAILED"}},
		{"other files in a folder", map[string]string{"a.json": run, "b.json": other, "c.txt": ""}, nil, true,
			[]string{"skipped 2 files", "b.json: not a trace: recorded HTTP exchanges", "c.txt: neither .json nor .traj", "total of 1 file\n"}, []string{"failure"}},
		{"only other files in a folder", map[string]string{"b.json": other}, nil, false,
			[]string{"skipped 1 file", "no trace was found"}, []string{"total"}},
		{"another file that is named", map[string]string{"a.json": run, "b.json": other}, []string{"a.json", "b.json"}, false,
			[]string{"total of 1 file", "1 failure", "b.json: not a trace: recorded HTTP exchanges"}, []string{"skipped"}},
		{"a broken file in a folder", map[string]string{"a.json": broken, "b.json": run}, nil, false,
			[]string{"total of 1 file", "1 failure", "a.json: /traj/0/role (byte 23)"}, []string{"skipped"}},
		{"a run that is no run in an array", map[string]string{"a.json": "[" + run + "," + other + ",7]"}, nil, false,
			[]string{"FAILED", "2 failures", "/1: not a trace", "/2: not a trace"}, nil},
		{"nothing", nil, nil, false, []string{"no trace was found"}, nil},
		{"a file that is not there", nil, []string{"none.json"}, false, []string{"1 failure", "none.json"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			paths := []string{dir}
			if test.given != nil {
				paths = nil
			}
			for _, name := range test.given {
				paths = append(paths, filepath.Join(dir, name))
			}
			var out, progress bytes.Buffer
			require.Equal(t, test.ok, replay(&out, &progress, paths, true))
			for _, want := range test.out {
				require.Contains(t, out.String(), want)
			}
			for _, no := range test.not {
				require.NotContains(t, out.String(), no)
			}
			require.Empty(t, progress.String(), "short runs show no progress")
		})
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, 2)
	p.file(0, "a.json")
	p.next = time.Time{} // it has been at it for long
	p.step(7)
	p.step(8)
	p.end()
	require.Equal(t, "1/2 \"a.json\", step 7\n", b.String())

	b.Reset()
	p.terminal, p.next = true, time.Time{}
	p.step(9)
	p.end()
	require.Equal(t, "\r\x1b[K1/2 \"a.json\", step 9\r\x1b[K", b.String())
}

func TestNamesAreShownOnOneLine(t *testing.T) {
	require.Equal(t, "dir/task 1.json", shown("dir/task 1.json"))
	require.Equal(t, `"a\nb\x1b"`, shown("a\nb\x1b"))
}

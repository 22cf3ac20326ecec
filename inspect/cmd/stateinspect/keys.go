package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/agentstate/state/workspace"
)

// readKeys reads the keys of a file: a line with an id and the secret in base64 for
// each, the one that seals first. Empty lines and those that begin with # are left
// out. No error contains a secret.
func readKeys(file string) ([]workspace.Key, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var keys []workspace.Key
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: line %d: want an id and a secret in base64", file, n)
		}
		secret, err := base64.StdEncoding.DecodeString(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: the secret of the key is not base64", file, n)
		}
		keys = append(keys, workspace.Key{ID: fields[0], Secret: secret})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no key", file)
	}
	return keys, nil
}

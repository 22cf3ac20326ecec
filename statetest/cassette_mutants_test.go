package statetest_test

import "github.com/agentstate/state/internal/mutation"

func init() {
	mutants["cassette"] = []mutation.Mutant{
		{Name: "credentials are not searched", File: "cassette_recorder.go",
			Old: `if found := d.keys.find(text); found != ""`, New: `if found := d.keys.find(text); false`},
		{Name: "headers are not collected", File: "cassette_credential.go",
			Old: `case strings.HasSuffix(lower, "api-key"):`, New: `case false:`},
		{Name: "bodies do not count", File: "cassette_request.go",
			Old: `"\njson " + renamed`, New: `"\njson "`},
		{Name: "recordings are used any number of times", File: "cassette_player.go",
			Old: `candidate.used = true`, New: `candidate.used = false`},
		{Name: "a miss is not reported", File: "cassette_player.go",
			Old: `p.reportMiss(req, recorded)`, New: `_ = recorded`},
		{Name: "what is left is not reported", File: "cassette_player.go",
			Old: `if len(left) > 0 {`, New: `if false {`},
		{Name: "requests in their order only", File: "cassette_player.go",
			Old: "		if candidate.request.key != req.key {\n			continue", New: "		if candidate.request.key != req.key {\n			break"},
		{Name: "secrets of the state are recorded", File: "cassette_recorder.go",
			Old: `if d.state == nil {`, New: `if true {`},
		{Name: "conversations are not checked", File: "cassette.go",
			Old: `refusal != "" {`, New: `false && refusal != "" {`},
		{Name: "requests without answers are left out", File: "cassette_recorder.go",
			Old: `case len(d.failed) > 0:`, New: `case false:`},
		{Name: "a file of no request is fine", File: "cassette_recorder.go",
			Old: `if len(file.Exchanges) == 0 {`, New: `if false {`,
			Also: []mutation.Edit{{File: "cassette_file.go", Old: `if len(f.Exchanges) == 0 {`, New: `if false {`}}},
	}
}

package crash_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["resume"] = []mutation.Mutant{
		{Name: "pattern without files", File: "resume.go", Old: "if len(files) == 0 {", New: "if false {"},
		{Name: "unknown fields", File: "resume.go", Old: "if len(v.Unknown) > 0 {", New: "if false {"},
		{Name: "effects made again", File: "resume.go", Old: "k.w.fail(s.madeAgain(k.w, version)...); k.failed() {", New: "k.failed() {"},
		{Name: "message under way", File: "resume.go", Old: "case len(v.DeadLetters) > 0:", New: "case len(v.DeadLetters) < 0:"},
		{Name: "workspaces are not read", File: "resume.go", Old: "if err := k.read(version); err != nil {", New: "if err := k.read(version); err != nil && false {"},
		{Name: "messages with one ID", File: "resume.go", Old: "if err := checkMessages(messages); err != nil {", New: "if err := checkMessages(nil); err != nil {"},
		{Name: "values are not verified", File: "resume.go", Old: "Verify(context.Background(), user); err != nil {", New: "Verify(context.Background(), user); false {"},
		{Name: "secrets are not known", File: "resume.go", Old: "k.w.secrets.Add(v.State())\n\tif isEmpty", New: "if isEmpty"},
		{Name: "effects that come later are not known", File: "resume.go", Old: "range s.Later {", New: "range s.Later[:0] {"},
		{Name: "a message may have been handled before", File: "resume.go", Old: "v.Version == before {", New: "v.Version < before {"},
		{Name: "ids of calls come again", File: "../script.go", Old: "		s.ids[c.ID] = true\n	}\n	if _, ok", New: "		_ = c\n	}\n	if _, ok"},
		{Name: "made effects are forgotten", File: "save.go", Old: "w.byKey[[2]string{e.Name, e.Key}] = e\n", New: ""},
		{Name: "a secret may be saved", File: "save.go", Old: "if k.unsealed != \"\" {", New: "if false {"},
		{Name: "an effect may have a secret", File: "save.go", Old: "k.w.secrets.Mask(text) != text {", New: "k.w.secrets.Mask(text) == \"\" {"},
		{Name: "messages are not sent", File: "resume.go", Old: "range k.c.Messages {", New: "range k.c.Messages[:0] {"},
		{Name: "conversation", File: "resume.go", Old: "k.w.fail(checkEnd(k.w, v)...)", New: "_ = v"},
	}
}

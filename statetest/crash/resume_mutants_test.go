package crash_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["resume"] = []mutation.Mutant{
		{Name: "pattern without files", File: "resume.go", Old: "if len(files) == 0 {", New: "if false {"},
		{Name: "unknown fields", File: "resume.go", Old: "if len(v.Unknown) > 0 {", New: "if false {"},
		{Name: "effects made again", File: "resume.go", Old: "r.checkEffects(s)", New: "_ = s"},
		{Name: "message under way", File: "resume.go", Old: "case len(v.DeadLetters) > dead[name]:", New: "case len(v.DeadLetters) < 0:"},
		{Name: "workspaces are not read", File: "resume.go", Old: "\t\tif v == nil {\n\t\t\treturn\n\t\t}\n\t\tdead[name] = len(v.DeadLetters)", New: "\t\tr.findings = nil\n\t\tif v != nil {\n\t\t\tdead[name] = len(v.DeadLetters)\n\t\t}"},
		{Name: "messages with one ID", File: "resume.go", Old: "if err := checkMessages(messages); err != nil {", New: "if err := checkMessages(nil); err != nil {"},
		{Name: "values are not verified", File: "resume.go", Old: "if _, err := r.d.observer.Verify(ctx, name); err != nil {", New: "if _, err := r.d.observer.Verify(ctx, name); false {"},
		{Name: "secrets are not known", File: "resume.go", Old: "r.w.secrets.Add(v.State())\n\tif len(v.Unknown)", New: "if len(v.Unknown)"},
		{Name: "effects that come later are not known", File: "resume.go", Old: "range s.Later {", New: "range s.Later[:0] {"},
		{Name: "a message may have been handled before", File: "resume.go", Old: "after.Version == before.Version {", New: "after.Version < before.Version {"},
		{Name: "ids of calls come again", File: "resume.go", Old: "s.Reserve(c.ID)", New: "_, _ = s, c"},
		{Name: "made effects are forgotten", File: "save.go", Old: "w.byKey[[2]string{e.name, e.key}] = firstEffect{effect: e, result: kept.Result}\n", New: ""},
		{Name: "a field may be secret", File: "save.go", Old: "case len(now.Unknown) > 0:", New: "case false:"},
		{Name: "a secret may be saved", File: "save.go", Old: "if secret := openSecret(&v.Workspace); secret != \"\" {", New: "if secret := openSecret(&v.Workspace); false {"},
		{Name: "earlier versions may have a secret", File: "save.go", Old: "for version := now.Oldest;", New: "for version := now.Version;"},
		{Name: "an effect may have a secret", File: "save.go", Old: "k.w.secrets.Mask(text) != text {", New: "k.w.secrets.Mask(text) == \"\" {"},
		{Name: "messages are not sent", File: "resume.go", Old: "range r.messages {", New: "range r.messages[:0] {"},
		{Name: "conversation", File: "resume.go", Old: "range checkEndConversation(r.w, v) {", New: "range checkEndConversation(r.w, v)[:0] {"},
	}
}

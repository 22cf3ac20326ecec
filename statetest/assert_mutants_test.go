package statetest_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["assert"] = []mutation.Mutant{
		{Name: "text as it is", File: "search.go", Old: "strings.Contains(folded, spelled) &&", New: "strings.Contains(folded, spelled+\"\\x00\") &&"},
		{Name: "no unescaping", File: "search.go", Old: "			queue = append(queue, v.next(\"escaped text\", unescape(v.text), v.decoded))\n", New: ""},
		{Name: "lines not joined", File: "search.go", Old: "			queue = append(queue, v.next(\"several parts\", breaks.ReplaceAllString(v.text, \"$1\"), v.decoded))\n", New: ""},
		{Name: "nothing decoded", File: "search.go", Old: "queue = append(queue, v.decode(work)...)", New: "_ = v.decode"},
		{Name: "decoded once", File: "search.go", Old: "maxDepth = 9 ", New: "maxDepth = 1 "},
		{Name: "base64 only from the first digit", File: "search.go", Old: "{6,}`), 4,", New: "{6,}`), 1,"},
		{Name: "lower hex only", File: "search.go", Old: "`[0-9a-fA-F]{8,}`", New: "`[0-9a-f]{8,}`"},
		{Name: "no UTF-16", File: "search.go", Old: ", string(little), string(big)} {", New: "} {\n\t\t_, _ = little, big"},
		{Name: "nothing inflated", File: "search.go", Old: "inflate(decoded.text, limit), true", New: "inflate(\"\", limit), true"},
		{Name: "no pieces", File: "search.go", Old: "range p.pieces.In(folded) {", New: "range p.pieces.In(\"\") {"},
		{Name: "lists not joined", File: "search.go", Old: "|\"\\s*,\\s*\"|", New: "|"},
		{Name: "case counts", File: "internal/kit/secrets.go", Old: "low := unicode.ToLower(r)", New: "low := unicode.SimpleFold(unicode.SimpleFold(r))"},
		{Name: "pieces in failures", File: "internal/kit/secrets.go", Old: "slices.Backward(v.pieces.In(Fold(masked)))", New: "slices.Backward(v.pieces.In(\"\"))"},
		{Name: "no keys of maps", File: "../internal/value/leaves.go", Old: "			w.add(iter.Key())\n", New: ""},
		{Name: "only secrets", File: "../redact.go", Old: "	if agent != \"\" {", New: "	if false {"},
		{Name: "texts may be empty", File: "noleak.go", Old: `if strings.Join(texts, "") == "" {`, New: "if false {"},
		{Name: "values may be missing", File: "noleak.go", Old: "	if len(values) == 0 {", New: "	if false {"},
		{Name: "diff not masked", File: "compare.go", Old: "return hides(x) || hides(y)", New: "_ = hides; return false",
			Also: []mutation.Edit{{File: "compare.go", Old: "return s.Mask(strings.ReplaceAll(diff, \"\\u00a0\", \" \"))", New: "return strings.ReplaceAll(diff, \"\\u00a0\", \" \")"}}},
		{Name: "secrets of states not compared", File: "compare.go", Old: "			content[f.Name] = s.Label(labelText(v))\n", New: ""},
		{Name: "Journal forgets the host", File: "journal.go", Old: "		words[0] = \"host\"", New: "		words[0] = \"\""},
		{Name: "missing golden files pass", File: "golden.go", Old: "	data, err := os.ReadFile(file)\n	if err != nil {", New: "	data, err := os.ReadFile(file)\n	if err != nil {\n		return true\n	}\n	if false {"},
		{Name: "golden files of any name", File: "golden.go", Old: "if !filepath.IsLocal(filepath.FromSlash(name)) || filepath.Clean(name) == \".\" {", New: "if false {"},
		{Name: "keys of calls count", File: "compare.go", Old: "return member.Name() == \"Key\"", New: "return false"},
		{Name: "keys of messages count", File: "compare.go", Old: "inside.WithoutKeys(m).Raw()", New: "m.Raw()"},
		{Name: "golden files with keys", File: "golden.go", Old: "	got = new(callkey.Masks).Mask(got)\n", New: "	_ = callkey.Masks{}\n"},
		{Name: "golden files with their line endings", File: "golden.go", Old: "cmp.Diff(want, unixLines(got))", New: "cmp.Diff(want, got)"},
	}
}

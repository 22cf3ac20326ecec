package statetest_test

import "github.com/agentstate/state/internal/mutation"

func init() {
	mutants["assert"] = []mutation.Mutant{
		{Name: "text as it is", File: "noleak_finder.go", Old: "	s.look(v)\n", New: ""},
		{Name: "no unescaping", File: "noleak_finder.go", Old: "		s.push(unescape(v))\n", New: ""},
		{Name: "no base64", File: "noleak_finder.go", Old: "s.push(decodeBase64(v, k, least))", New: "_, _ = k, least"},
		{Name: "base64 only from the first digit", File: "noleak_finder.go", Old: "for k := range 4 {", New: "for k := range 1 {"},
		{Name: "no hex", File: "noleak_finder.go", Old: "		s.push(decodeHex(v, k))\n", New: ""},
		{Name: "lower hex only", File: "noleak_decode.go", Old: "	case 'a' <= c|0x20 && c|0x20 <= 'f':", New: "	case 'a' <= c && c <= 'f':"},
		{Name: "lines not joined", File: "noleak_finder.go", Old: "	s.push(joinLines(v))\n", New: ""},
		{Name: "no UTF-16", File: "noleak_finder.go", Old: "bytes.ContainsAny(v.text, highBytes)", New: "false"},
		{Name: "nothing inflated", File: "noleak_finder.go", Old: "bytes.IndexByte(v.text, 0x1f) >= 0", New: "false"},
		{Name: "no pieces", File: "noleak_finder.go", Old: "	if len(folded) >= longBytes {", New: "	if false {"},
		{Name: "case counts", File: "noleak_matcher.go", Old: "				c += 'a' - 'A'\n", New: ""},
		{Name: "no keys of maps", File: "leaves.go", Old: "			w.add(it.Key())\n", New: ""},
		{Name: "only secrets", File: "../hidden.go", Old: "	if agent != \"\" {", New: "	if false {"},
		{Name: "excerpts not masked", File: "noleak.go", Old: `return lastBytes(head) + "[SECRET]" + firstBytes(tail)`, New: `return lastBytes(head) + text[middle.from:middle.to] + firstBytes(tail)`},
		{Name: "texts may be empty", File: "noleak.go", Old: `if strings.Join(texts, "") == "" {`, New: "if false {"},
		{Name: "values may be missing", File: "noleak.go", Old: "	if len(values) == 0 {", New: "	if false {"},
		{Name: "diff not masked", File: "compare.go", Old: "return s.hides(x) || s.hides(y)", New: "return false",
			Also: []mutation.Edit{{File: "compare.go", Old: "return s.mask(strings.ReplaceAll(diff, \"\\u00a0\", \" \"))", New: "return strings.ReplaceAll(diff, \"\\u00a0\", \" \")"}}},
		{Name: "secrets of states not compared", File: "compare.go", Old: "			content[f.Name] = s.maskedValue(v)\n", New: ""},
		{Name: "Fields shows secrets", File: "fields.go", Old: "		case isSecret(st, f.Name):\n			return f.Name + \": it has another", New: "		case false:\n			return f.Name + \": it has another"},
		{Name: "Is accepts any value", File: "fields.go", Old: "case cmp.Equal(want, got, compareWith(s), cmp.Options(opts)):", New: "case true:"},
		{Name: "Unset accepts any value", File: "fields.go", Old: "		return f.Name + \": it is set:\\n  + \" + fmt.Sprint(treeOf(got))", New: "		_ = fmt.Sprint(treeOf(got))\n		return \"\""},
		{Name: "Denied accepts readers", File: "fields.go", Old: "			return f.Name + \": \" + reader(st) + \" may read it\"", New: "			return \"\""},
		{Name: "Fields without wants", File: "fields.go", Old: "	if len(want) == 0 {", New: "	if false {"},
		{Name: "Journal forgets the host", File: "journal.go", Old: "		words[0] = \"host\"", New: "		words[0] = \"\""},
		{Name: "missing golden files pass", File: "golden.go", Old: "	if errors.Is(err, fs.ErrNotExist) {", New: "	if errors.Is(err, fs.ErrNotExist) {\n		return true\n	}\n	if false {"},
		{Name: "golden files of any name", File: "golden.go", Old: "if !filepath.IsLocal(filepath.FromSlash(name)) || filepath.Clean(name) == \".\" {", New: "if false {"},
		{Name: "golden files with their line endings", File: "golden.go", Old: "cmp.Diff(want, unixLines(got))", New: "cmp.Diff(want, got)"},
		{Name: "Offline only refuses", File: "offline.go", Old: "	if !g.ended {", New: "	if false {"},
		{Name: "Offline lets all pass", File: "offline.go", Old: "	if isLoopback(host) {", New: "	if true {"},
	}
}

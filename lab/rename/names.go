package main

import "regexp"

// library is the path of the root module.
const library = "github.com/agentstate/state"

// name is a name of the library that changes. Owner is the type that has the
// field or the method, "" for a name of the package.
type name struct{ pkg, owner, old, now string }

var names = []name{
	{"", "Field", "Or", "GetOr"},
	{"", "History", "Push", "AppendOutside"},
	{"wire", "", "Aside", "OutsideConversation"},
	{"wire", "", "isAside", "isOutside"},
	{"wire", "", "asideKey", "outsideKey"},
	{"workspace", "", "maxHistory", "maxRecordBytes"},
	{"loop", "", "Passing", "Retryable"},
	{"tool", "", "Passing", "Retryable"},
	{"tool", "", "Begin", "BeginStep"},
	{"transcript", "Window", "Max", "Target"},
	{"workspace", "", "Busy", "WhenBusy"},
	{"workspace/work", "", "Busy", "WhenBusy"},
	{"workspace/internal/ledger", "", "Busy", "WhenBusy"},
	{"workspace", "Message", "Busy", "WhenBusy"},
	{"workspace/work", "Message", "Busy", "WhenBusy"},
	{"workspace", "Manager", "Busy", "Active"},
	{"workspace", "Manager", "Accept", "AcceptRollback"},
	{"workspace", "Options", "Busy", "WhenBusy"},
	{"workspace", "Options", "History", "RecordBytes"},
	{"workspace/internal/ledger", "Options", "History", "RecordBytes"},
	{"workspace", "Options", "Messages", "KeepMessages"},
	{"workspace", "Options", "Results", "KeepResults"},
	{"workspace", "Options", "Holder", "Name"},
	{"workspace", "Reversion", "To", "Version"},
	{"workspace", "", "Reversion", "RevertTo"},
	{"workspace/work", "Reversion", "To", "Version"},
	{"workspace/work", "", "Reversion", "RevertTo"},
	{"wire", "Transport", "Converse", "RecordOnly"}, // with the opposite meaning: see use.invert
}

// text is what is replaced where no types are known: in comments, in Markdown,
// in the code that mutants have as strings, and in modules that do not load.
type text struct {
	old *regexp.Regexp
	now string
}

var texts = []text{
	{re(`\bField(\[\w+\])?\.Or\b`), "Field$1.GetOr"},
	{re(`\.Or\(((?:st|tx|req|search|branch|clone|fork|w|\w+\.State\(\)), )`), ".GetOr($1"},
	{re(`\bHistory(\(\))?\.Push\b`), "History$1.AppendOutside"},
	{re(`\bwire\.Aside\b`), "wire.OutsideConversation"},
	{re(`\[Aside\]`), "[OutsideConversation]"},
	{re(`\b(loop|tool)\.Passing\b`), "$1.Retryable"},
	{re(`\[Passing\]`), "[Retryable]"},
	{re(`\btool\.Begin\b`), "tool.BeginStep"},
	{re(`\b(workspace|work|ledger)\.Busy\b`), "$1.WhenBusy"},
	{re(`\b(Options|Message|msg)\.Busy\b`), "$1.WhenBusy"},
	{re(`\bManager\.Busy\b`), "Manager.Active"},
	{re(`\bm\.Busy\(`), "m.Active("},
	{re(`\bManager\.Accept\b`), "Manager.AcceptRollback"},
	{re(`\bm\.Accept\(`), "m.AcceptRollback("},
	{re(`\bOptions\.History\b`), "Options.RecordBytes"},
	{re(`\bOptions\.Messages\b`), "Options.KeepMessages"},
	{re(`\bOptions\.Results\b`), "Options.KeepResults"},
	{re(`\bOptions\.Holder\b`), "Options.Name"},
	{re(`\bReversion\{To:`), "RevertTo{Version:"},
	{re(`\bReversion\b`), "RevertTo"},
	{re(`\bWindow\{Max:`), "Window{Target:"},
	{re(`\bWindow\.Max\b`), "Window.Target"},
	{re("(`?)\\bMax\\b(`?) ?\\+ ?(`?)Keep\\b"), "${1}Target${2}+${3}Keep"},
	{re(`(?m)^[ \t]*(?://[ \t]*)?Converse: +true,\n`), ""},
	{re(`\bConverse: true, `), ""},
	{re(`, Converse: true\}`), "}"},
	{re(`\bConverse: true\}`), "}"},
	{re(`\bTransport\.Converse\b`), "Transport.RecordOnly"},
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

func replace(s string) string {
	for _, t := range texts {
		s = t.old.ReplaceAllString(s, t.now)
	}
	return s
}

package workspace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/document"
)

// What is stored under a name that the schema does not have stays stored, and no code
// reads it. That is sound for a field that was removed, and a loss without a word for one
// that was renamed without Was: the Logger is told of each name once.

// tellUnread warns of what is stored in a document of a user and the schema does not have.
func (m *Manager) tellUnread(user string, doc *document.Document) {
	names := slices.DeleteFunc(doc.Unread(m.schema), func(name string) bool { return !m.unread.Add(name) })
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = fault.Quote(name)
	}
	m.warnLater(m.ctx, user, alarmUnread, fmt.Errorf(
		"workspace: Options.Schema does not have what is stored as %s: it is kept, and not read; give Was to a field that was renamed",
		strings.Join(names, ", ")))
}

// tellLacking warns of a field that code reads and that the schema does not have.
func (m *Manager) tellLacking(field string, err error) {
	m.warnLater(m.ctx, "", alarmLacking.of(fault.Clip(field)), err)
}

package sqlstore

import (
	"strings"

	"github.com/agentstate/state/store"
)

const (
	// refusedMariaDB is the number of the error of a compound statement in which
	// a write did not affect its row.
	refusedMariaDB = "31999"
	// maxCompound is the number of writes that a compound statement makes.
	maxCompound = 128
)

// batchMariaDB returns a compound statement, which is a transaction in one round
// trip, or nil for too many writes. MySQL has no such statement. A transaction
// finds out which condition did not hold, and locks the keys of deletes that
// found no row: see makeWrites.
func (d *database) batchMariaDB(writes []store.Write, revs []store.Revision) *batchStatement {
	if len(writes) > maxCompound {
		return nil
	}
	b := &batchStatement{}
	var text strings.Builder
	text.WriteString("begin not atomic declare exit handler for sqlexception begin rollback; resignal; end; start transaction; ")
	for _, i := range keyOrder(writes) {
		statement, args, conditional := d.forWrite(writes[i], revs[i])
		b.args = append(b.args, args...)
		text.WriteString(statement + "; ")
		if conditional || writes[i].Delete {
			text.WriteString("if row_count() <> 1 then signal sqlstate '45000' set mysql_errno = " + refusedMariaDB +
				", message_text = 'a write has not affected its row'; end if; ")
		}
	}
	text.WriteString("commit; end")
	b.text = text.String()
	return b
}

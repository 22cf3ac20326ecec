package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/workspace"
)

// A program has its tables and the workspaces of its users in one database. An
// order and the message about it are stored as one, and so are the answer and
// the row that says that it was given.
func Example_transaction() {
	dir, err := os.MkdirTemp("", "orders")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_txlock=immediate")
	check(err)
	defer db.Close()
	_, err = db.ExecContext(ctx, "create table orders (id text primary key, answered int)")
	check(err)

	s, err := sqlstore.New(ctx, db, sqlstore.SQLite(), nil)
	check(err)
	defer s.Close()
	m, err := workspace.Open(ctx, s, &workspace.Options{
		Run: func(ctx context.Context, r *workspace.Run) error {
			r.SetReply("Your order " + r.Message().ID + " is on its way.")
			return r.CommitTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "update orders set answered = 1 where id = ?", r.Message().ID)
				return err
			})
		},
	})
	check(err)
	defer m.Close()

	msg := workspace.Message{ID: "17", Content: state.UserText("Where is my order?")}
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	_, err = tx.ExecContext(ctx, "insert into orders values ('17', 0)")
	check(err)
	out, err := m.SubmitTx(ctx, tx, "ann", msg)
	check(err)
	fmt.Println(out.Status)
	check(tx.Commit())

	out, err = m.Await(ctx, "ann", msg.ID) // which begins the run that no process has yet
	check(err)
	var answered int
	check(db.QueryRowContext(ctx, "select answered from orders").Scan(&answered))
	fmt.Println(out.Status, answered, out.Reply)
	// Output:
	// queued
	// done 1 Your order 17 is on its way.
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

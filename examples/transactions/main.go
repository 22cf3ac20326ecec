// Transactions shows writes that belong together, and that no update is lost.
package main

import (
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/agentstate/state"
)

var (
	Stock    = &state.Field[int]{Name: "stock"}
	Reserved = &state.Field[int]{Name: "reserved"}
	Visits   = &state.Field[int]{Name: "visits"}
	schema   = state.MustSchema(Stock, Reserved, Visits)
)

var errSoldOut = errors.New("sold out")

// reserve moves one item, or nothing if there is none.
func reserve(st *state.State) error {
	return st.Update(func(tx *state.State) error {
		n := Stock.Or(tx, 0)
		if n == 0 {
			return errSoldOut
		}
		return errors.Join(
			Stock.Set(tx, n-1),
			Reserved.Set(tx, Reserved.Or(tx, 0)+1),
		)
	})
}

func main() {
	st := state.New(schema)
	check(Stock.Set(st, 3))

	// Ten agents want one of three items, all at once.
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() { errs[i] = reserve(st) })
	}
	wg.Wait()
	refused := 0
	for _, err := range errs {
		if errors.Is(err, errSoldOut) {
			refused++
		}
	}
	fmt.Println("stock", Stock.Or(st, 0), "reserved", Reserved.Or(st, 0), "refused", refused)
	fmt.Println("version", st.Version(), "(one per transaction that wrote)")

	// For one field there is Field.Update.
	for range 1000 {
		wg.Go(func() { check(Visits.Update(st, func(n int) (int, error) { return n + 1, nil })) })
	}
	wg.Wait()
	fmt.Println("visits", Visits.Or(st, 0), "of 1000")

	// A transaction that fails leaves nothing behind.
	err := st.Update(func(tx *state.State) error {
		if err := Stock.Set(tx, 100); err != nil {
			return err
		}
		fmt.Println("inside:", Stock.Or(tx, 0), "outside:", Stock.Or(st, 0))
		return errors.New("the delivery was cancelled")
	})
	fmt.Println(err, "- stock", Stock.Or(st, 0))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

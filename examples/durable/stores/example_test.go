package main

import "context"

func Example() {
	embedded(context.Background())
	// Output:
	// *store.Memory, durability: process
	//   ada: 8 visits, notes ["note 1"]
	//   ada: 8 visits, notes ["note 2"]
	// *sqlstore.Store, durability: power
	//   ada: 8 visits, notes ["note 1"]
	//   ada: 16 visits, notes ["note 1" "note 2"]
}

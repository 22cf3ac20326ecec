package main

func Example() {
	main()
	// Output:
	// stock 0 reserved 3 refused 7
	// version 4 (one per transaction that wrote)
	// visits 1000 of 1000
	// inside: 100 outside: 0
	// the delivery was cancelled - stock 0
}

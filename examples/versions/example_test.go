package main

func Example() {
	main()
	// Output:
	// now:      Porto []
	// snapshot: Lisbon [Avenida]
	//           state: read-only
	//
	// version agent    cause    op      field   value
	// 1       planner           set     city    Lisbon
	// 2       booker   call_17  set     hotels  [Avenida]
	// 3       planner           set     city    Porto
	// 4       booker   call_18  set     hotels  [Ribeira Torel]
	// 5       booker            delete  hotels  <nil>
	//
	// at 0: - []
	// at 1: Lisbon []
	// at 2: Lisbon [Avenida]
	// at 3: Porto [Avenida]
	// at 4: Porto [Avenida Ribeira Torel]
	// at 5: Porto []
	//
	// reverted: Lisbon [Avenida] is version 6
	// the future: state: version 99: no value true
}

package main

func Example() {
	main()
	// Output:
	// typed:   Ada [gift fragile] 3
	// by name: 4 (int), [due name quantity ship_to tags]
	// both:    12 Mill Lane 2027-01-31
	//
	// refused:
	//   state: "quantity": must be at least 1
	//   state: "quantity": $: want integer, got string
	//   state: "ship_to": $.street: want string, got number
	//   state: "colour": unknown field
	//   state: "quantity": type: want int, got bool
	// still:   4 at version 6
	// copies:  [gift fragile]
	// the last of 2 tags is number 1, "fragile"
}

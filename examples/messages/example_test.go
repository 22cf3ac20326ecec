package main

func Example() {
	main()
	// Output:
	// user says "What is in this picture?"
	// call c1 of look with {"pixels":9007199254740993,"zoom":1.0}
	//   a member this library does not know: "c2ln"
	// look returned the string "42", not a number: "42"
	// passed through: reasoning {"type":"reasoning","role":"assistant","summary":"It purrs."}
	//
	// 4 of 4 messages are the same after a round trip
	// state: "message": $.role: the member occurs twice
	// state: "message": $.tools[0].input.a.x: the member occurs twice
	// state: "message": $.content: want string or array, got number
}

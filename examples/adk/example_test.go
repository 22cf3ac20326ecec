package main

import "context"

func Example() {
	if err := talk(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// waits: approve {"amount":30}
	// reply: I have refunded 30 to [SECRET].
	// [ann: delivery ann: returns] 30
}

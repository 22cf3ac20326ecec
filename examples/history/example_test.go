package main

func Example() {
	main()
	// Output:
	// 0  writer  saw 1, said tool_call "assistant": "rhymes" id "call_1"
	// 1  writer  saw 3, said text "assistant": "Rain falls on the plain."
	// 2  critic  saw 4, said text "assistant": "Too plain."
	// conversation: 5 messages
	//
	// for the editor:
	//   text "user": "writer says: Rain falls on the plain."
	//   text "user": "critic says: Too plain."
	//
	// popped the critic's turn; the last is now the writer's, of 2
	// conversation: 5 messages
	// state: append a result of "writer" to "history": access denied to agent "critic"
}

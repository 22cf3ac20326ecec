package main

func Example() {
	main()
	// Output:
	// not answered: fare({"flight":"AZ1483"})
	// refused: message 7: unanswered-call: call "call_2" of "fare"
	// refused: message 7: duplicate-id: call "call_1" of "fare"
	// repaired: message 5: unanswered-call: answered call "call_2" of "fare"
	// repaired: message 5: duplicate-id: now with the id "call_NEW": call "call_1" of "fare"
	// repaired: message 6: duplicate-id: now with the id "call_NEW": call "call_1" of "fare"
	// findings now: 0
	// left out: 0
	// system "You are a travel agent."
	// {"role":"user","content":"From Oslo to Rome, please, on the 3rd."}
	// {"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"flights","input":{"to":"FCO"}}]}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"[\"DY1872\",\"AZ1483\"]"}]}
	// {"role":"assistant","content":[{"type":"text","text":"Two flights. I am looking at the fares."},{"type":"tool_use","id":"call_NEW","name":"fare","input":{"flight":"DY1872"}},{"type":"tool_use","id":"call_2","name":"fare","input":{"flight":"AZ1483"}}]}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_NEW","content":"99.00"},{"type":"tool_result","tool_use_id":"call_2","content":"There is no result: the call may have been made.","is_error":true}]}
}

package main

func Example() {
	main()
	// Output:
	// view:     {"version":2,"values":{"api_key":"[SECRET]","due":"2027-01-31","messages":[{"type":"text","role":"assistant","content":"Well done.","stop_reason":"stop"}],"score":7,"scratch":"for this run only"},"results":1}
	// imported: 7 Sunday at version 2
	// history:  judge [text "assistant": "Well done."]
	// secret:   11 characters; scratch is there: false
	// scratch before the end of the run: true
	// and after it:                      false
	// damaged:  true
	// state: import: "score": $: want number, got string
	// state: import: format 2; this package reads format 1
	// state: a State is restored with Import, not from its JSON view
}

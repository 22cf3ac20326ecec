package main

func Example() {
	main()
	// Output:
	// the tool has a key of 13 characters
	// %+v:      state: version 2, 2 set, 0 results
	// - host (string) = "api.example.com"
	// - api_key (string) = [SECRET]
	// JSON:     {"version":2,"values":{"api_key":"[SECRET]","host":"api.example.com"},"results":0}
	// All:      map[api_key:[SECRET] host:api.example.com]
	// level=INFO msg=step state.agent="" state.version=2 state.set=2 state.results=0 all="map[api_key:[SECRET] host:api.example.com]"
	// journal:  set api_key [SECRET]
	// error:    state: "api_key": validation refused the value
	// error:    state: "api_key": $: want a value that can be stored, got a state.Masked
	//
	// Redact:
	// GET /v1?key=[SECRET]
	// Authorization: Basic dXNlcj[SECRET]
	// 401: key [SECRET] is not valid
}

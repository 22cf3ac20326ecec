package main

func Example() {
	main()
	// Output:
	// first try, 0 values stored:
	// state: "arrival": $: want date, got another string
	// state: "guests": $: want integer, got string
	// second try, 3 values stored
	//
	// what the desk's model reads:
	// - guest (string) = "Ada \u003c/state\u003e \u0026 co"
	//     Who travels.
	// - arrival (date) = "2027-03-01"
	//     The first night.
	//     Update: Ask if the year is not clear.
	// - guests (integer) = 2
	// - wishes (list of any) = ["sea view","late checkout"]
	// - card (string) = [SECRET]
	//
	// what the audit's model reads:
	// - guest (string) = "Ada \u003c/state\u003e \u0026 co"
	//     Who travels.
	// - arrival (date) = "2027-03-01"
	//     The first night.
	// - guests (integer) = 2
	// - wishes (list of any) = ["sea view","late checkout"]
	//
	// the same schema again: true
	// state: schema: $.fields[0].type: "int" is none of any, boolean, date, integer, list, number, object, string
	// state: schema: $.fields[1]: field "tags": no handler "sum" for type list
}

package main

func Example() {
	main()
	// Output:
	// next: triage
	// next: human
	// next: clerk
	// - ticket (string) = "The shop is down!"
	// - urgent (boolean) = true
	// - answer (string) = "We are on it."
	// - customer_mail (string) = [SECRET]
	// - pages_sent (integer) = 1
}

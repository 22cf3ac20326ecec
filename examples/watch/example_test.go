package main

func Example() {
	main()
	// Output:
	// version 1: step is reading
	// version 1: done is 0.3333333333333333
	// version 2: step is thinking
	// version 2: done is 0.6666666666666666
	// version 3: step is writing
	// version 3: done is 1
	//
	// only step:
	// version 2: reading by worker
	// version 3: thinking by worker
	// version 4: writing by worker
}

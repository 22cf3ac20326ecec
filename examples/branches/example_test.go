package main

func Example() {
	main()
	// Output:
	// before: [the question] cost 0
	// joined: [the question history science art] cost 30 angle art
	// as one version: 2
	// again:  state: join: branch 0: branch is joined
	//
	// conflict: state: conflicting writes to ["title"] true
	// title:    Draft - 4 findings
	// settled:  A short history - the question, history, science, art, music
}

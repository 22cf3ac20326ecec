package main

func Example() {
	main()
	// Output:
	//           order  notes  card   draft
	// support   rw     rw     -      rw
	// billing   r      rw     r      -
	// general   r      rw     -      -
	// stranger  -      -      -      -
	//
	// read:  state: read "card": access denied to agent "general" true true
	// write: state: set "order": access denied to agent "general"
	//        agent "general", op "set", field "order"
	// read:  state: read "order": access denied to agent "stranger", who is not in the team
	//
	// keys of the host:     [card draft notes order]
	// keys of general:      [notes order]
	// billing for general:  [notes order] signed by billing
	// and as billing again: [notes order]
	//
	// versions: 2 for the host, 1 for general
}

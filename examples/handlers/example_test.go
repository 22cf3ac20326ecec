package main

func Example() {
	main()
	// Output:
	// replace        draft + final                        => final
	// append         [a] + [b a]                          => [a b a]
	// union          [a] + [b a]                          => [a b]
	// union_by       [Go] + [GO C]                        => [Go C]
	// merge_by_id    [{1 open} {2 open}] + [{1 done}]     => [{1 done} {2 open}]
	// keep_last(2)   [a b] + [c]                          => [b c]
	// merge_map      map[x:1 y:1] + map[y:2]              => map[x:1 y:2]
	// sum            0.25 + 0.5 + 0.25                    => 1
	// max            3 + 7 + 5                            => 7
	// min            3 + 7 + 5                            => 3
	// first_wins     first + second                       => first
	// last_wins      first + second                       => second
	// longest        ant + elephant + bee                 => elephant
	//
	// SetWith a union: [a b c]
	// Replace:         [z]
	// A panic:         state: "notes": handler strict panicked with a string [z]
}

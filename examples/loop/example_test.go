package main

func Example() {
	main()
	// Output:
	// 1. triage: tool "update_state": bad arguments:
	// - "amount": want number, got string
	// 2. triage: {"updated":["intent","amount"]}
	// 3. manager: {"updated":["approval"]}
	// 4. billing: {"updated":["refunded"]}
	// 1. "triage" when: does not match
	//     not: no
	//       has "intent": yes
	// 2. "manager" when: does not match
	//     and: no
	//       gte "amount": yes
	//       not: no
	//         has "approval": yes
	// 3. "billing" when: does not match
	//     and: no
	//       eq "intent": yes
	//       not: no
	//         has "refunded": yes
	// next: nobody
	// call_2 triage intent
	// call_2 triage amount
	// call_3 manager approval
	// call_4 billing refunded
}

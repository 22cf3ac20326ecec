// Package route chooses the next agent by rules over a state.
//
// A [Router] is a list of rules. The first rule that matches names the agent:
//
//	var router = route.Must(route.New(
//		route.When(route.Has(OrderID), "billing"),
//		route.When(route.And(route.Eq(Intent, "refund"), route.Gte(Amount, 100)), "manager"),
//		route.Otherwise("general"),
//	))
//
//	agent, ok := router.Next(st)
//
// Next reads one version of the state, changes nothing, and gives the same
// answer for the same content. [Router.Explain] says how the answer came about,
// without showing values.
//
// A predicate is typed by its field: [Has], [Eq], [Ne], [In], [Gt], [Gte],
// [Lt], [Lte], [Match] and [Contains]. [And], [Or] and [Not] combine
// predicates, and [Func] asks a Go function. No comparison matches an unset
// field, not even Ne. Not(Eq(f, v)) does.
//
// A router reads what the handle that it is given may read. A rule that
// mentions a hidden field never matches, neither under Not nor if the other
// side of an Or holds. The choice of the next agent therefore reveals nothing
// about fields that the handle may not read. A field that the state does not
// have is treated like a hidden one. [Router.Check] finds such rules when a
// network is built.
//
// A router marshals to JSON. [Parse] reads it back and finds fields by name.
// All values of this package are immutable and safe for concurrent use.
package route

// How it is built, and why: for those who change the package.
//
// Rules are data: a predicate knows its field by name and its operation, so
// that a router can be marshalled, explained and checked against a schema. Go
// functions can be predicates and have names, so that rules with them can still
// be read back. A predicate has three answers: yes, no, and none, for fields
// that the handle may not read. None stays none under Not, And and Or;
// otherwise a rule would reveal what is hidden. Rules have limits, in New as in
// Parse, so that Parse reads what MarshalJSON writes. The instructions of
// patterns are counted: 300 bytes can become 40 000.

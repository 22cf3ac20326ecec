// Package route names the next agent by rules over a state.
//
// A [Router] is a list of rules. The first that matches says who is next:
//
//	var router = route.Must(route.New(
//		route.When(route.Has(OrderID), "billing"),
//		route.When(route.And(route.Eq(Intent, "refund"), route.Gte(Amount, 100)), "manager"),
//		route.Otherwise("general"),
//	))
//
//	agent, ok := router.Next(st)
//
// Next reads one version of the state, changes nothing and gives the same answer
// for the same content. [Router.Explain] says how it came about, without values.
//
// # Predicates
//
// Predicates are typed by the field that they ask about: [Has], [Eq], [Ne],
// [In], [Gt], [Gte], [Lt], [Lte], [Match] and [Contains]. [And], [Or] and [Not]
// combine them, and [Func] asks a Go function.
//
// Of a field that is unset no comparison holds, not even Ne; Not turns that
// round, so Not(Eq(f, v)) holds if f is unset and Ne(f, v) does not.
//
// # Rights
//
// A router sees what the handle sees that it is given. A rule that mentions a
// hidden field never matches: not under Not, nor where the other side of an Or
// holds. So which agent is next does not depend on what the handle may not read.
// The same goes for a field that the state does not have. [Router.Check] finds
// such rules when a network is built.
//
// # Rules as data
//
// A router marshals to JSON and is read back with [Parse], which finds fields by
// name and reports every mistake with its path:
//
//	{"rules": [
//	  {"when": {"field": "order_id", "op": "has"}, "agent": "billing"},
//	  {"otherwise": "general"}
//	]}
//
// All values of this package are immutable and safe for concurrent use.
package route

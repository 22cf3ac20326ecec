// Package statemodel specifies package state a second time, with maps, slices
// and copies of everything, and compares the two. Only tests import it.
//
// Random programs of steps run on a State and on its model. After each step
// both must have the same content, versions, journal and export, and each call
// must have returned what the model expects. [Check] runs such programs. [Walk]
// lets another test use them.
//
//   - fields.go: the schema and its handlers, and accessors for fields of any type
//   - values.go: what handlers, conversions and comparisons do to values
//   - content.go: the immutable content of a state, and a write to one field
//   - state.go: the model of a State, with versions, branches and joins
//   - step.go: the steps of a program, and how they are drawn
//   - run.go: each step, done to a State and to its model
//   - branches.go: the steps with branches, past versions and transactions
//   - compare.go: what is compared
package statemodel

package state

import "slices"

// Op names what a write does.
type Op string

// The ops of a [Change].
const (
	OpSet     Op = "set"     // the handler combined the value with the current one
	OpReplace Op = "replace" // Replace and Patch
	OpUpdate  Op = "update"  // Field.Update
	OpDelete  Op = "delete"  // Delete, Patch with nil, EndRun
	OpAppend  Op = "append"  // a result was appended to the history
	OpAnswer  Op = "answer"  // calls of a result were answered
	OpPop     Op = "pop"     // the last result was removed
	OpReset   Op = "reset"   // the results were replaced
	OpRevert  Op = "revert"  // Revert
)

// opKinds lists the ops by the number that the engine carries.
var opKinds = []Op{OpSet, OpReplace, OpUpdate, OpDelete, OpAppend, OpAnswer, OpPop, OpReset, OpRevert}

func (o Op) kind() uint8 { return uint8(slices.Index(opKinds, o)) }

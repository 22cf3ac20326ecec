// Package engine keeps the versions of a state: branches of them, commits,
// journals, transactions and joins.
//
// It knows cells at addresses, and the visibility classes that divide the
// addresses among readers. It knows neither fields nor schemas, agents, JSON or
// messages. Three interfaces say what a value is, how two values merge and
// which values a reader may see: [Form], [Merger] and [Gate].
//
// The nouns, each in a file that uses only the files named before it:
//
//   - A [Cell] is one stored value. An [Address] is a [Slot] and, in the slot for
//     keys, a key. The [Layout] lists the slots of a schema.
//   - An [Op] is one write to one address. An [Edit] is what a commit does to one
//     cell, with the ops that did it.
//   - The journal keeps the ops of the latest versions as records.
//   - A read set holds what a transaction has read. A [NetWrite] is everything
//     that a branch has done to one cell since it was forked.
//   - A [Tree] holds the cells of one version. A [Branch] is a line of versions.
//   - A commit makes the next version of a branch, a join merges branches into
//     their parent, and a transaction is a branch that is rebased onto its parent.
package engine

// Package work has the types that package workspace shares with those who watch,
// show and store its work: what becomes of a message, the changes of a workspace,
// the operations of a Manager, and the errors. Package workspace has the names that
// a program needs every day, so that most programs import only that.
package work

// Package crash tests that a workflow survives the death of its processes, and
// that a new version of it goes on with what an older one has stored.
//
// A [Test] kills the processes of a workspace at each point at which they do
// something outside of themselves, lets others go on, and compares the result with
// that of an undisturbed run. [Resume] lets the present program go on with files
// that [Test].Save has written for a released version. Both run in bubbles of
// [testing/synctest], offline and deterministically.
package crash

// Package profile names the profile label by which package tool recognises the
// runs of package workspace.
package profile

// Label is the key of the label, and Run its value.
const (
	Label = "agentstate"
	Run   = "run"
)

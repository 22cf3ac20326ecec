package workspace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
)

// The trouble whose outcome a store decides is tested on every store. These tests
// and those of this package share what follows.
func TestTrouble(t *testing.T) {
	workspacetest.Virtual(t, func(testing.TB) store.Store { return store.NewMemory() })
}

// onStore calls a test with an empty store in memory, in virtual time, and with a
// TTL.
func onStore(t *testing.T, test func(t *testing.T, db store.Store, ttl time.Duration)) {
	t.Helper()
	defer workspacetest.Watch(t)()
	synctest.Test(t, func(t *testing.T) { test(t, store.NewMemory(), 30*time.Second) })
}

// plain is a store that reports no changes.
type plain = fakestore.Bare

type (
	whichRun = workspacetest.WhichRun
	heldRuns = workspacetest.Runs
	heldRun  = workspacetest.Held
)

var (
	notes   = workspacetest.Notes
	visits  = workspacetest.Visits
	scratch = workspacetest.Scratch
	token   = workspacetest.Token
	schema  = workspacetest.Schema

	text         = workspacetest.Text
	whenBusy     = workspacetest.WhenBusy
	nothing      = workspacetest.Nothing
	visit        = workspacetest.Visit
	open         = workspacetest.Open
	closeEarly   = workspacetest.CloseEarly
	hold         = workspacetest.Hold
	view         = workspacetest.View
	conversation = workspacetest.Conversation
	users        = workspacetest.Users
	entries      = workspacetest.Entries
	write        = workspacetest.Restore
	settle       = workspacetest.Settle

	inTTLs        = workspacetest.InTTLs
	requireAbout  = workspacetest.RequireAbout
	requireWithin = workspacetest.RequireWithin
	requireSoon   = workspacetest.RequireSoon
	waitUntil     = workspacetest.WaitUntil

	withFaults  = workspacetest.WithFaults
	withOutages = workspacetest.WithOutages
	asProcess   = workspacetest.AsProcess

	refund    = workspacetest.Refund
	answers   = workspacetest.Answers
	keyOf     = workspacetest.KeyOf
	dialog    = workspacetest.Dialog
	ids       = workspacetest.IDs
	ask       = workspacetest.Ask
	suspended = workspacetest.Suspended
)

package workspace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// The constants of the ledger are converted, not translated.
func TestConstantsAreThoseOfTheLedger(t *testing.T) {
	require.Equal(t,
		[]Busy{BusyEnqueue, BusyReject, BusyInterrupt, BusyRollback},
		[]Busy{Busy(ledger.BusyEnqueue), Busy(ledger.BusyReject), Busy(ledger.BusyInterrupt), Busy(ledger.BusyRollback)})
	require.Equal(t,
		[]Takeover{TakeoverResume, TakeoverRestart},
		[]Takeover{Takeover(ledger.TakeoverResume), Takeover(ledger.TakeoverRestart)})
	require.Equal(t,
		[]Status{StatusStarted, StatusQueued, StatusDuplicate, StatusRejected},
		[]Status{Status(ledger.StatusStarted), Status(ledger.StatusQueued), Status(ledger.StatusDuplicate), Status(ledger.StatusRejected)})
	require.Equal(t,
		[]Kind{KindStep, KindFinish, KindInterrupt, KindRollback, KindUpdate},
		[]Kind{ledger.KindStep, ledger.KindFinish, ledger.KindInterrupt, ledger.KindRollback, ledger.KindUpdate})
}

package workspace

// Ending says how the handling of a message has ended.
type Ending string

// The endings. All but EndingFenced and EndingAbandoned are stored.
const (
	EndingFinished    Ending = "finished"    // Options.Run returned nil, and its changes are stored
	EndingFailed      Ending = "failed"      // the message is a dead letter
	EndingInterrupted Ending = "interrupted" // another message with BusyInterrupt has ended the run
	EndingRolledBack  Ending = "rolled_back" // another message with BusyRollback has ended the run
	EndingCancelled   Ending = "cancelled"   // Manager.Cancel has ended the run
	EndingReset       Ending = "reset"       // Manager.Reset has dropped the message
	EndingDiscarded   Ending = "discarded"   // Manager.Discard has dropped the message
	EndingDropped     Ending = "dropped"     // there were too many dead letters after it
	EndingFenced      Ending = "fenced"      // another holder has taken the run over, or its lease has expired
	EndingAbandoned   Ending = "abandoned"   // the end of the run could not be stored; it will be taken over
)

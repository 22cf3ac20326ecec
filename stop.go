package state

// Stop says how an answer of a model has ended. It has the same values for all
// providers.
type Stop string

// The values of Stop. Only after an answer without a Stop, and after StopEnd,
// StopCalls and StopPaused, are its calls complete.
const (
	StopEnd         Stop = "end"         // the model has said all
	StopCalls       Stop = "calls"       // the model waits for the results of its calls
	StopPaused      Stop = "paused"      // the provider goes on when it is sent the answer back
	StopLength      Stop = "length"      // a limit of tokens has cut it: that of the answer, or of the model's context
	StopRefused     Stop = "refused"     // the model declines to answer
	StopFiltered    Stop = "filtered"    // a filter of the provider has stopped the request or the answer
	StopFailed      Stop = "failed"      // the provider could not finish it, and might if it is asked again
	StopInterrupted Stop = "interrupted" // the program, or a person, has stopped it
	StopRepeated    Stop = "repeated"    // a Loop has stopped a model that repeats a call in vain
	StopBudget      Stop = "budget"      // a Loop has asked no model, because its Budget is spent
	StopUnknown     Stop = "unknown"     // the provider's word says nothing that this library knows
)

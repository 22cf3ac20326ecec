package otelstate

// The names of what the semantic conventions do not have.
const (
	spanPrefix    = "agentstate."
	eventLate     = "agentstate.heartbeat.late"
	eventResponse = "agentstate.inference"

	keyStatus    = "agentstate.message.status"
	keyRun       = "agentstate.run.id"
	keyAttempt   = "agentstate.run.attempt"
	keyEnding    = "agentstate.run.ending"
	keyWaited    = "agentstate.run.waited" // seconds
	keyResumed   = "agentstate.run.resumed"
	keyVersion   = "agentstate.version"
	keyEffects   = "agentstate.effects"
	keyBytes     = "agentstate.bytes"
	keyTries     = "agentstate.tries"
	keyLeft      = "agentstate.heartbeat.left" // fraction of the lifetime of the lease
	keyBatch     = "agentstate.tool.batch"
	keyCallKey   = "agentstate.tool.call.key" // the idempotency key of tool.CallOf
	keyHow       = "agentstate.takeover.how"
	keyOpName    = "agentstate.operation"
	endingRetry  = "retry" // another attempt follows
	howResume    = "resume"
	howRestart   = "restart"
	secondsUnit  = "s"
	bytesUnit    = "By"
	fractionUnit = "1"
)

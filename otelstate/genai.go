package otelstate

// The names of the semantic conventions for generative AI that this package
// uses, as version 1.41.0 has them. testdata/genai.txt lists
// them.
const (
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"

	keyOperation      = "gen_ai.operation.name"
	keyProvider       = "gen_ai.provider.name"
	keyConversation   = "gen_ai.conversation.id"
	keyWorkflow       = "gen_ai.workflow.name"
	keyAgent          = "gen_ai.agent.name"
	keyTool           = "gen_ai.tool.name"
	keyToolType       = "gen_ai.tool.type"
	keyToolCall       = "gen_ai.tool.call.id"
	keyToolArguments  = "gen_ai.tool.call.arguments"
	keyToolResult     = "gen_ai.tool.call.result"
	keyModel          = "gen_ai.response.model"
	keyResponse       = "gen_ai.response.id"
	keyFinishReasons  = "gen_ai.response.finish_reasons"
	keyInputTokens    = "gen_ai.usage.input_tokens"
	keyOutputTokens   = "gen_ai.usage.output_tokens"
	keyCacheRead      = "gen_ai.usage.cache_read.input_tokens"
	keyCacheWrite     = "gen_ai.usage.cache_creation.input_tokens"
	keyReasoning      = "gen_ai.usage.reasoning.output_tokens"
	keyInputMessages  = "gen_ai.input.messages"
	keyOutputMessages = "gen_ai.output.messages"
	keyTokenType      = "gen_ai.token.type"

	metricInference = "gen_ai.client.operation.duration"
	metricTokens    = "gen_ai.client.token.usage"

	keyErrorType = "error.type"
)

// Values of gen_ai.operation.name, gen_ai.tool.type and gen_ai.token.type.
const (
	operationWorkflow = "invoke_workflow"
	operationAgent    = "invoke_agent"
	operationTool     = "execute_tool"
	operationChat     = "chat"

	toolFunction = "function"

	tokensInput  = "input"
	tokensOutput = "output"
)

// other stands for a name that is not known, or that a model has made up.
const other = "_OTHER"

// Values of gen_ai.provider.name.
const (
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
	providerGemini    = "gcp.gemini"
)

package transcript

import (
	"regexp"
	"strings"
)

// server is what a server demands of the conversation besides the API that it
// offers, or a model at any server. A host or a model that is not said is any.
type server struct {
	of          Profile        // of the API
	host, model *regexp.Regexp // the name of a model without what modelName cuts off
	demands     Profile
}

// servers are the servers that are stricter than their API, as they were recorded
// or reported up to 2026-11-27. The first one that fits counts.
var servers = []server{
	// "Extra inputs are not permitted" of reasoning_content (crush#1590,
	// litellm#30835, OpenMinis#87: a closed schema); the index of a call and prefix
	// were accepted in recordings. "Tool call id was … but must be a-z, A-Z, 0-9,
	// with a length of 9" (langchain#24668, openclaw#57672). "Unexpected role 'user'
	// after role 'tool'" (goose#5998, zed#37021). "Expected last role User or Tool
	// (or Assistant with prefix True)" (rig#1130).
	newServer(OpenAI, `(^|\.)mistral\.ai$`, ``, Rules{
		Name: "Mistral", IDs: Labels{Chars: "a-zA-Z0-9", MinBytes: 9, MaxBytes: 9},
		AssistantAfterResults: true, UserLast: true, Members: []string{"prefix", "index"},
	}),
	// "property 'reasoning_content' is unsupported" (freellmapi#1070, jan#8136), also
	// 'reasoning' (gptel#774) and 'status' (llama_index#14701).
	newServer(OpenAI, `(^|\.)groq\.com$`, ``, Rules{Name: "Groq", Members: []string{}}),
	// 400 for reasoning_content and other unknown members, 200 for reasoning
	// (Empryo#209, kilocode#10375, qwen-code#11045).
	newServer(OpenAI, `(^|\.)cerebras\.ai$`, ``, Rules{Name: "Cerebras", Members: []string{"reasoning"}}),
	// "The reasoning_content in the thinking mode must be passed back to the API", of
	// each message of the assistant (pi#3636, kimi-cli#2141, Zoo-Code#201).
	newServer(OpenAI, `(^|\.)deepseek\.com$`, ``, Rules{Name: "DeepSeek", ReasoningContent: true}),
	// "thinking is enabled but reasoning_content is missing" (continue#11600,
	// llmgateway#2093); "the message at position 8 with role 'assistant' must not be
	// empty" (AstrBot#7200, kimi-code#1985).
	newServer(OpenAI, `(^|\.)(moonshot\.(ai|cn)|kimi\.com)$`, ``,
		Rules{Name: "Moonshot", ReasoningContent: true, NoBlankTexts: true}),
	// "INVALID_ARGUMENT" for ids that repeat (kern-ai#412, 9router#4273).
	newServer(OpenAI, `(^|\.)openrouter\.ai$`, `^gemini`, Rules{Name: "OpenRouter", UniqueIDs: true}),
	// At any server (hermes-agent#20154, mistral-vibe#578, pi-neuralwatt#12).
	newServer(OpenAI, ``, `^(mistral|ministral|magistral|devstral|codestral)`,
		Rules{Name: "Mistral", AssistantAfterResults: true}),
	// "Unsupported value: 'messages[0].role' does not support 'system' with this
	// model" of o1-mini and o1-preview (jan#4392), 'developer' too (new-api#847), and
	// "Developer instruction is not enabled" of Gemma (rig#788, adk-python#3900).
	newServer(OpenAI, ``, `^(o1-(mini|preview)|gemma-[123])`, Rules{Name: "OpenAI", Roles: []string{"user", "assistant"}}),
	// See findEmptyParts.
	newServer(Gemini, `(^|[.-])aiplatform\.googleapis\.com$`, ``, Rules{Name: "Vertex", NoEmptyParts: true}),
	// See [Profile.NoMidSystem]. Opus 4.8 took such messages without a beta header in
	// recordings; pydantic-ai#6765 has tried the models.
	{Anthropic, regexp.MustCompile(``), regexp.MustCompile(`^claude-(instant|[123]|sonnet-4|haiku-4|opus-4($|-[0-7]($|-)))`),
		Profile{rules: Anthropic.rules, NoMidSystem: true}},
}

// newServer returns a server that demands more than an API: what is set in more. It
// copies the fields that a server has set so far, each as it adds to those of the API.
func newServer(of Profile, host, model string, more Rules) server {
	rules := of.Rules()
	rules.Name = more.Name
	if more.IDs != (Labels{}) {
		rules.IDs = more.IDs
	}
	if more.Roles != nil {
		rules.Roles = more.Roles
	}
	rules.Members = more.Members
	rules.UniqueIDs = rules.UniqueIDs || more.UniqueIDs
	rules.UserLast, rules.AssistantAfterResults = more.UserLast, more.AssistantAfterResults
	rules.NoBlankTexts, rules.NoEmptyParts = more.NoBlankTexts, more.NoEmptyParts
	rules.ReasoningContent = more.ReasoningContent
	return server{of, regexp.MustCompile(host), regexp.MustCompile(model), newProfile(rules)}
}

// At returns the profile for a model at the host of a server, such as
// "api.mistral.ai", which may be stricter than the API that it offers. Its Model is
// that model, and Pictures is set for some that read them. A table of this package
// has the servers and the models of which requests that others accept were refused;
// the rules of all others, and of a profile of [NewProfile], stay. Either may be empty
// if it is not known.
func (p Profile) At(host, model string) Profile {
	name := modelName(model)
	p.Pictures = p.Pictures || pictureModels.MatchString(name)
	for _, s := range servers {
		if p.rules == s.of.rules && s.host.MatchString(host) && s.model.MatchString(name) {
			p.rules, p.NoMidSystem = s.demands.rules, p.NoMidSystem || s.demands.NoMidSystem
			break
		}
	}
	p.Model = model
	return p
}

// pictureModels are models that have taken pictures from users in Chat Completions, by
// OpenAI's description of them. If a server refuses one, wire withholds it.
var pictureModels = regexp.MustCompile(`^(gpt-4o|gpt-4-1|gpt-5|o4-mini)`)

// modelName returns the name that a model has with all of its servers, which put
// names of their own in front of it, and versions behind it.
func modelName(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if at := strings.LastIndex(model, "anthropic."); at >= 0 { // of Bedrock
		model = model[at+len("anthropic."):]
	}
	return modelVersion.ReplaceAllString(strings.ReplaceAll(model, ".", "-"), "")
}

// modelVersion is a date, or the latest one, as in claude-opus-4-20250514,
// claude-opus-4-0, claude-opus-4@20250514, anthropic.claude-opus-4-20250514-v1:0
// and claude-opus-4:beta.
var modelVersion = regexp.MustCompile(`([-@]20\d{6}.*|-latest|-0|-v\d+|)([:@\[].*)?$`)

package traces

import (
	"net/url"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// vendorHosts are the vendors behind hosts, by the end of the host.
var vendorHosts = []struct{ end, vendor string }{
	{"api.openai.com", "OpenAI"},
	{"openai.azure.com", "Azure"},
	{"services.ai.azure.com", "Azure"},
	{"cognitiveservices.azure.com", "Azure"},
	{"models.inference.ai.azure.com", "GitHub"},
	{"models.github.ai", "GitHub"},
	{"api.anthropic.com", "Anthropic"},
	{"generativelanguage.googleapis.com", "Google AI"},
	{"aiplatform.googleapis.com", "Vertex AI"},
	{"amazonaws.com", "Bedrock"},
	{"api.groq.com", "Groq"},
	{"api.mistral.ai", "Mistral"},
	{"api.x.ai", "xAI"},
	{"api.deepseek.com", "DeepSeek"},
	{"openrouter.ai", "OpenRouter"},
	{"ai-gateway.vercel.sh", "Vercel"},
	{"api.together.xyz", "Together"},
	{"api.together.ai", "Together"},
	{"api.fireworks.ai", "Fireworks"},
	{"api.cerebras.ai", "Cerebras"},
	{"api.perplexity.ai", "Perplexity"},
	{"huggingface.co", "Hugging Face"},
	{"databricks.com", "Databricks"},
	{"azuredatabricks.net", "Databricks"},
	{"ollama.com", "Ollama"},
	{"snowflakecomputing.com", "Snowflake"},
}

// vendorName returns the vendor that the recording names, or that of the host.
// The name may be a host as well.
func (c *httpCall) vendorName() string {
	if c.vendor != "" {
		return vendorOf(c.vendor)
	}
	at, err := url.Parse(c.url)
	switch {
	case err != nil:
		return ""
	case at.Port() == "11434":
		return "Ollama"
	}
	return vendorOf(strings.TrimSuffix(at.Host, ":443"))
}

func vendorOf(host string) string {
	for _, v := range vendorHosts {
		if host == v.end || strings.EqualFold(host, v.vendor) || strings.HasSuffix(host, "."+v.end) || strings.HasSuffix(host, "-"+v.end) {
			return v.vendor
		}
	}
	return host
}

// model returns the model that the request or its URL names, or else the
// answer.
func (c *httpCall) model(x *exchange) string {
	if model := loose.Text(loose.Members(x.request).Get("model")); model != "" {
		return model
	}
	for _, before := range []string{"/models/", "/deployments/", "/model/"} {
		if _, rest, ok := strings.Cut(c.url, before); ok {
			if end := strings.IndexAny(rest, ":/?"); end >= 0 {
				rest = rest[:end]
			}
			if name, err := url.PathUnescape(rest); err == nil {
				rest = name
			}
			return rest
		}
	}
	return x.answeredModel()
}

// answeredModel returns the model that a response or the first event of a
// stream that has one names.
func (x *exchange) answeredModel() string {
	for _, text := range append([][]byte{x.response}, x.stream...) {
		o := loose.Members(text)
		for _, o := range []jsontext.Object{o, loose.Members(o.Get("message")), loose.Members(o.Get("response"))} {
			for _, name := range []string{"model", "modelVersion"} {
				if model := o.Get(name); jsontext.Kind(model) == "string" {
					return jsontext.Unquote(model)
				}
			}
		}
	}
	return ""
}

package converse

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// partsOf reads the blocks of a message of a role.
func partsOf(role string, blocks []state.JSON) []provider.Part {
	parts := make([]provider.Part, len(blocks))
	for i, block := range blocks {
		parts[i] = partOf(role, block)
	}
	return parts
}

// partOf reads a block. Tools that Bedrock runs are called and answered in one
// message of the assistant.
func partOf(role string, block state.JSON) provider.Part {
	members := objectOf(block)
	p := provider.Part{JSON: block}
	use, result := objectOf(members["toolUse"]), objectOf(members["toolResult"])
	switch {
	case members.isText("text"):
		p.Kind, p.Text = provider.PartText, members.text("text")
	case use != nil && role == "assistant" && use.text("type") != "server_tool_use":
		p.Kind, p.ID, p.Name, p.Input = provider.PartCall, use.text("toolUseId"), use.text("name"), use["input"]
	case result != nil && role == "user":
		p = resultOf(result)
		p.JSON = block
	case members["reasoningContent"] != "" && role == "assistant":
		reasoning := objectOf(objectOf(members["reasoningContent"])["reasoningText"])
		p.Kind, p.Text = provider.PartThinking, reasoning.text("text")
	default:
		media, ok := mediaOf(members)
		if ok {
			p = media
			p.JSON = block
		}
		p.Name = nameOf(members, p)
	}
	return p
}

// nameOf names a block that only Bedrock has. A file has its name.
func nameOf(members object, p provider.Part) string {
	if p.Kind != provider.PartOther {
		return p.Name
	}
	for _, name := range []string{"cachePoint", "guardContent", "toolUse", "toolResult", "image", "document", "video", "json"} {
		if value := members[name]; value != "" && value != "null" {
			return name
		}
	}
	return "" // the first member
}

// resultOf reads a result. One that is a JSON value and nothing else is that
// value. A null says nothing.
func resultOf(result object) provider.Part {
	p := provider.Part{Kind: provider.PartResult, ID: result.text("toolUseId"), IsError: result.text("status") == "error"}
	blocks, ok := listOf(result["content"])
	if !ok || len(blocks) == 0 {
		return p
	}
	if only := objectOf(blocks[0]); len(blocks) == 1 && len(only) == 1 && only["json"] != "" && only["json"] != "null" {
		p.Content = only["json"]
		return p
	}
	p.Parts = partsOf(provider.RoleTool, blocks)
	return p
}

// mimes are the types of Bedrock's formats.
var (
	images    = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
	documents = map[string]string{
		"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown",
		"doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	}
)

// mediaOf reads an image or a document with data. One in S3 is for AWS only.
func mediaOf(members object) (provider.Part, bool) {
	for _, kind := range []struct {
		member string
		kind   provider.PartKind
		mimes  map[string]string
	}{{"image", provider.PartImage, images}, {"document", provider.PartFile, documents}} {
		media := objectOf(members[kind.member])
		data := objectOf(media["source"]).text("bytes")
		if mime := kind.mimes[media.text("format")]; mime != "" && data != "" {
			return provider.Part{Kind: kind.kind, MIME: mime, Data: data, Name: media.text("name")}, true
		}
	}
	return provider.Part{}, false
}

func (codec) EncodePart(role string, p provider.Part) (state.JSON, bool) {
	switch p.Kind {
	case provider.PartText:
		return encode(object{"text": state.JSONText(p.Text)}), true
	case provider.PartThinking:
		reasoning := object{"reasoningText": encode(object{"text": state.JSONText(p.Text)})}
		return encode(object{"reasoningContent": encode(reasoning)}), role == "assistant"
	case provider.PartCall:
		use := object{"toolUseId": state.JSONText(p.ID), "name": state.JSONText(p.Name), "input": p.Input}
		return encode(object{"toolUse": encode(use)}), true
	case provider.PartResult:
		return encode(object{"toolResult": encode(encodeResult(p))}), true
	case provider.PartImage, provider.PartFile:
		if role == "user" || role == provider.RoleTool {
			return encodeMedia(p)
		}
	}
	return "", false
}

// encodeResult returns a result. A value that is neither an object nor a text is
// written as a text.
func encodeResult(p provider.Part) object {
	result := object{"toolUseId": state.JSONText(p.ID)}
	content := []state.JSON{}
	switch {
	case p.Parts != nil:
		for _, part := range p.Parts {
			content = append(content, part.JSON)
		}
	case p.Content == "", p.Content == "null":
	case strings.HasPrefix(string(p.Content), "{"):
		content = append(content, encode(object{"json": p.Content}))
	default:
		content = append(content, encode(object{"text": state.JSONText(p.Content.Text())}))
	}
	result["content"] = encode(content)
	if p.IsError {
		result["status"] = `"error"`
	}
	return result
}

func encodeMedia(p provider.Part) (state.JSON, bool) {
	mime, _, _ := strings.Cut(strings.ToLower(p.MIME), ";")
	source := encode(object{"bytes": state.JSONText(p.Data)})
	for format, known := range images {
		if mime == known && p.Data != "" {
			return encode(object{"image": encode(object{"format": state.JSONText(format), "source": source})}), true
		}
	}
	name := p.Name
	if name == "" {
		name = "document" // it is required
	}
	for format, known := range documents {
		if mime == known && p.Data != "" {
			document := object{"format": state.JSONText(format), "name": state.JSONText(name), "source": source}
			return encode(object{"document": encode(document)}), true
		}
	}
	return "", false
}

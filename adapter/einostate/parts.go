package einostate

import (
	"encoding/json"
	"strings"
)

// part has the members of eino's parts, and those of Chat Completions. A part of
// eino that has data becomes one of Chat Completions, where the data is in
// ImageURL, InputAudio or File, and an empty text is where it was.
type part struct {
	Type             string          `json:"type"`
	Text             string          `json:"text,omitempty"`
	Image            *media          `json:"image,omitempty"`
	Audio            *media          `json:"audio,omitempty"`
	Video            *media          `json:"video,omitempty"`
	File             *media          `json:"file,omitempty"`
	Reasoning        json.RawMessage `json:"reasoning,omitempty"`
	ToolSearchResult json.RawMessage `json:"tool_search_result,omitempty"`
	Extra            json.RawMessage `json:"extra,omitempty"`
	ImageURL         *media          `json:"image_url,omitempty"`
	InputAudio       *media          `json:"input_audio,omitempty"`
}

type media struct {
	URL        *string         `json:"url,omitempty"`
	Base64Data *string         `json:"base64data,omitempty"`
	MIMEType   string          `json:"mime_type,omitempty"`
	Detail     string          `json:"detail,omitempty"`
	Name       string          `json:"name,omitempty"`
	Extra      json.RawMessage `json:"extra,omitempty"`
	Data       string          `json:"data,omitempty"`      // of InputAudio
	Format     string          `json:"format,omitempty"`    // of InputAudio
	FileData   string          `json:"file_data,omitempty"` // of File
	Filename   string          `json:"filename,omitempty"`  // of File
}

// chat changes a part of eino to one of Chat Completions, if that has a place
// for it.
func (p *part) chat() {
	empty := ""
	switch m := p.Image; {
	case m == nil:
	case m.Base64Data != nil:
		url := "data:" + m.MIMEType + ";base64," + *m.Base64Data
		p.ImageURL, m.Base64Data = &media{URL: &url, Detail: m.Detail}, &empty
	case m.URL != nil:
		p.ImageURL, m.URL = &media{URL: m.URL, Detail: m.Detail}, &empty
	}
	if m := p.Audio; m != nil && m.Base64Data != nil {
		_, format, _ := strings.Cut(m.MIMEType, "/")
		p.Type, p.InputAudio, m.Base64Data = "input_audio", &media{Data: *m.Base64Data, Format: format}, &empty
	}
	if m := p.File; m != nil && m.Base64Data != nil {
		m.FileData, m.Filename = "data:"+m.MIMEType+";base64,"+*m.Base64Data, m.Name
		p.Type, m.Base64Data = "file", &empty
	}
}

// eino changes a part of Chat Completions to one of eino.
func (p *part) eino() {
	if c := p.ImageURL; c != nil && c.URL != nil {
		if p.Image == nil {
			p.Image = &media{Detail: c.Detail}
		}
		p.Image.setURL(*c.URL)
		p.ImageURL = nil
	}
	if c := p.InputAudio; c != nil {
		if p.Audio == nil {
			p.Audio = &media{MIMEType: "audio/" + c.Format}
		}
		p.Type, p.Audio.Base64Data, p.InputAudio = "audio_url", &c.Data, nil
	}
	if m := p.File; m != nil && p.Type == "file" {
		if m.Name == "" {
			m.Name = m.Filename
		}
		m.setURL(m.FileData)
		p.Type, m.FileData, m.Filename = "file_url", "", ""
	}
}

// setURL sets the data of a URL, or the URL if it has none.
func (m *media) setURL(url string) {
	mime, data, found := strings.Cut(url, ";base64,")
	if m.URL != nil || !found || !strings.HasPrefix(mime, "data:") {
		m.URL = &url
		return
	}
	m.MIMEType, m.Base64Data = strings.TrimPrefix(mime, "data:"), &data
}

// convertParts returns parts of another type with the same JSON, after each was
// changed.
func convertParts[To, From any](from From, change func(*part)) (to To, err error) {
	var parts []part
	if err = convert(from, &parts); err != nil {
		return to, err
	}
	for i := range parts {
		change(&parts[i])
	}
	err = convert(parts, &to)
	return to, err
}

// convert sets to to what has the JSON of from.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

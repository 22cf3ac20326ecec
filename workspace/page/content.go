package page

import (
	"cmp"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
)

// said is what a message has besides calls.
type said struct {
	parts    []Part // its texts and media, in their order
	thoughts string
	cited    []Citation
}

// add reads a message as any format of package provider makes it.
func (s *said) add(m state.Message) {
	s.addMembers(m)
	switch m := m.(type) {
	case state.TextMessage:
		content := m.Content()
		if strings.HasPrefix(string(content), "[") {
			elements, _ := jsontext.Elements([]byte(content)) // checked with the message
			for _, element := range elements {
				s.addPart(element)
			}
		} else if text := m.Text(); text != "" {
			s.parts = append(s.parts, Part{Kind: Text, Text: text})
		}
	case state.UnknownMessage:
		if _, typ := origin.ItemType(m); typ != "reasoning" {
			return
		}
		item, _ := m.Extra(origin.Item)
		members, _ := jsontext.Members([]byte(item)) // none if it is not an object
		for _, name := range []string{"summary", "content"} {
			s.thoughts += textsOf(members.Get(name), "text")
		}
	}
}

// addMembers adds what stands beside the content: in Chat Completions, thoughts
// under the names that providers give them, and citations.
func (s *said) addMembers(m state.Message) {
	if raw, ok := m.Extra("reasoning_content"); ok {
		s.thoughts += raw.Text()
	}
	held, ok := origin.Of(m, origin.OpenAI)
	if !ok {
		return
	}
	more := held.Object("more")
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_text"} {
		if text := more.String(name); text != "" {
			s.thoughts += text
			break // some providers send it twice
		}
	}
	s.addCitations(more.Get("annotations"))
}

// addPart adds a part of a content.
func (s *said) addPart(element []byte) {
	part, err := jsontext.Members(element)
	if err != nil {
		return
	}
	switch typ := part.String("type"); {
	case part.Bool("thought"): // Gemini
		s.thoughts += part.String("text")
		return
	case typ == "thinking":
		s.thoughts += cmp.Or(part.String("thinking"), textsOf(part.Get("thinking"), "text"))
		return
	}
	s.addCitations(part.Get("annotations"))
	s.addCitations(part.Get("citations"))
	switch p, ok := provider.ReadPart(state.JSON(element)); {
	case !ok:
	case p.Kind == provider.PartText:
		s.parts = append(s.parts, Part{Kind: Text, Text: p.Text})
	default:
		media := &Media{Type: p.MIME, URL: p.DataURL(), Name: p.Name}
		switch {
		case p.Kind == provider.PartImage:
			media.Type = cmp.Or(media.Type, "image/*")
		case media.Type == "audio/mp3": // as OpenAI calls it
			media.Type, media.URL = "audio/mpeg", strings.Replace(media.URL, "audio/mp3", "audio/mpeg", 1)
		}
		s.parts = append(s.parts, Part{Kind: MediaPart, Media: media})
	}
}

// addCitations adds those of Chat Completions, of the Responses API and of Anthropic.
func (s *said) addCitations(list []byte) {
	elements, _ := jsontext.Elements(list) // nil if it is no list
	for _, element := range elements {
		at, _ := jsontext.Members(element)
		if inner := at.Object("url_citation"); inner != nil {
			at = inner
		}
		c := Citation{
			URL: at.String("url"), Title: cmp.Or(at.String("title"), at.String("document_title"), at.String("filename")),
			Text: at.String("cited_text"),
		}
		if c != (Citation{}) && !slices.Contains(s.cited, c) {
			s.cited = append(s.cited, c)
		}
	}
}

// textsOf returns the texts of the elements of a list.
func textsOf(list []byte, name string) string {
	var all strings.Builder
	elements, _ := jsontext.Elements(list)
	for _, element := range elements {
		part, _ := jsontext.Members(element)
		all.WriteString(part.String(name))
	}
	return all.String()
}

// Content returns what a person says with texts and media, as the content of a
// [workspace.Message]: a text alone, or parts that package provider sends to every
// provider that takes such files. The URL of a sound must be a data URL or that of a
// file of [workspace.Manager.AddFile], and that of a document as well for most providers.
func Content(parts ...Part) (state.Message, error) {
	if len(parts) == 1 && parts[0].Kind == Text {
		return state.UserText(parts[0].Text), nil
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("page: %w: a content without parts", state.ErrInvalid)
	}
	var list []state.JSON
	for i, p := range parts {
		switch {
		case p.Kind == Text:
			list = append(list, members{"type": "text", "text": p.Text}.json())
		case p.Kind == MediaPart && p.Media != nil && p.Media.URL != "":
			part, err := p.Media.part()
			if err != nil {
				return nil, fmt.Errorf("page: part %d: %w", i, err)
			}
			list = append(list, part)
		default:
			return nil, fmt.Errorf("page: part %d: %w: want a text, or media with a URL", i, state.ErrInvalid)
		}
	}
	return state.Parts("user", list...)
}

// part returns a file in the words of OpenAI, or of Gemini where those have no place
// for it or for its type. Package provider translates them.
func (m *Media) part() (state.JSON, error) {
	typ, data, isData := strings.Cut(strings.TrimPrefix(m.URL, "data:"), ";base64,")
	if !isData {
		typ = m.Type
	}
	typ, _, err := mime.ParseMediaType(cmp.Or(typ, "application/octet-stream"))
	if err != nil {
		return "", fmt.Errorf("%w: the MIME type: %w", state.ErrInvalid, err)
	}
	_, isFile := origin.FileID(origin.FileScheme, m.URL)
	switch {
	case isFile: // has all that is known of it, as it is sent to no provider
		return members{"fileData": members{"mimeType": typ, "fileUri": m.URL, "displayName": m.Name}}.json(), nil
	case isData:
		return state.JSON(origin.FilePart(typ, m.Name, data)), nil
	case strings.HasPrefix(typ, "image/"):
		return members{"type": "image_url", "image_url": members{"url": m.URL}}.json(), nil
	case m.Type != "":
		return members{"fileData": members{"mimeType": typ, "fileUri": m.URL}}.json(), nil
	}
	return members{"type": "input_file", "file_url": m.URL}.json(), nil
}

// members are those of a JSON object.
type members map[string]any

func (m members) json() state.JSON {
	data, _ := jsontext.Marshal(m) // of texts
	return state.JSON(data)
}

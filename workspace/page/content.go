package page

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
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
		var elements [][]byte
		content, err := m.Content(), errNoParts
		if strings.HasPrefix(string(content), "[") {
			elements, err = jsontext.Elements([]byte(content))
		}
		if err != nil {
			if text := m.Text(); text != "" {
				s.parts = append(s.parts, Part{Kind: Text, Text: text})
			}
			return
		}
		for _, element := range elements {
			s.addPart(element)
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

var errNoParts = errors.New("page: the content has no parts")

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
	case typ == "thinking":
		s.thoughts += cmp.Or(part.String("thinking"), textsOf(part.Get("thinking"), "text"))
	case typ == "text", typ == "input_text", typ == "output_text":
		s.parts = append(s.parts, Part{Kind: Text, Text: part.String("text")})
		s.addCitations(part.Get("annotations"))
		s.addCitations(part.Get("citations"))
	default:
		if media := mediaOf(part); media != nil {
			s.parts = append(s.parts, Part{Kind: MediaPart, Media: media})
		}
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

// mediaOf reads a part that is no text, in the words of any provider, or returns nil.
func mediaOf(part jsontext.Object) *Media {
	data := func(typ, value string) string { return "data:" + typ + ";base64," + value }
	switch part.String("type") {
	case "image_url":
		url := cmp.Or(part.Object("image_url").String("url"), part.String("image_url"))
		return mediaAt(url, "image/*", "")
	case "input_image":
		return mediaAt(part.String("image_url"), "image/*", "")
	case "input_audio":
		sound := part.Object("input_audio")
		typ := "audio/" + sound.String("format")
		if typ == "audio/mp3" {
			typ = "audio/mpeg"
		}
		return mediaAt(data(typ, sound.String("data")), typ, "")
	case "file", "input_file":
		file := part
		if inner := part.Object("file"); inner != nil {
			file = inner
		}
		return mediaAt(cmp.Or(file.String("file_data"), file.String("file_url")), "", file.String("filename"))
	case "image", "document", "audio", "video":
		source := part.Object("source")
		url, typ := source.String("url"), source.String("media_type")
		if value := source.String("data"); value != "" && source.String("type") == "base64" {
			url = data(typ, value)
		}
		return mediaAt(url, typ, part.String("title"))
	}
	if inline := part.Object("inlineData"); inline != nil { // Gemini
		typ := inline.String("mimeType")
		return mediaAt(data(typ, inline.String("data")), typ, "")
	}
	if file := part.Object("fileData"); file != nil {
		return mediaAt(file.String("fileUri"), file.String("mimeType"), file.String("displayName"))
	}
	return nil
}

func mediaAt(url, typ, name string) *Media {
	if url == "" {
		return nil
	}
	if head, _, isData := strings.Cut(url, ";base64,"); isData {
		typ = strings.TrimPrefix(head, "data:")
	}
	return &Media{Type: typ, URL: url, Name: name}
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
			list = append(list, object("type", "text", "text", p.Text))
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
		return object("fileData", map[string]any{"mimeType": typ, "fileUri": m.URL, "displayName": m.Name}), nil
	case strings.HasPrefix(typ, "image/"):
		return object("type", "image_url", "image_url", map[string]any{"url": m.URL}), nil
	case isData:
		return state.JSON(origin.FilePart(typ, m.Name, data)), nil
	case m.Type != "":
		return object("fileData", map[string]any{"mimeType": typ, "fileUri": m.URL}), nil
	}
	return object("type", "input_file", "file_url", m.URL), nil
}

// object returns a JSON object of names and values.
func object(members ...any) state.JSON {
	var made jsontext.Object
	for i := 0; i < len(members); i += 2 {
		value, _ := json.Marshal(members[i+1]) // of texts
		made = made.With(members[i].(string), value)
	}
	return state.JSON(made.JSON())
}

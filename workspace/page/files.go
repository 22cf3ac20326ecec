package page

import (
	"cmp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// filesAt is the default of Source.Files.
const filesAt = "/files/"

// Content is the function [Content] for media that a page has of the Source: those at
// Files are what [workspace.Manager.AddFile] has stored.
func (s *Source) Content(parts ...Part) (state.Message, error) {
	meant := make([]Part, len(parts))
	for i, p := range parts {
		if meant[i] = p; p.Media == nil {
			continue
		}
		if id, ok := origin.FileID(cmp.Or(s.Files, filesAt), p.Media.URL); ok {
			media := *p.Media
			media.URL, meant[i].Media = origin.FileScheme+id, &media
		}
	}
	return Content(meant...)
}

// FileAt returns the address at which a page finds a file of the user.
func (s *Source) FileAt(url string) string {
	if id, ok := origin.FileID(origin.FileScheme, url); ok {
		return cmp.Or(s.Files, filesAt) + id
	}
	return url
}

// showFiles gives media the addresses at which pages find them.
func (s *Source) showFiles(parts []Part) {
	for _, p := range parts {
		if p.Media != nil {
			p.Media.URL = s.FileAt(p.Media.URL)
		}
	}
}

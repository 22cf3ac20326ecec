package aisdkstate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

// A chat shows a file at its address, and sends it back as it was shown: the
// conversation refers to the file.
func TestFilesByReference(t *testing.T) {
	s := newSite(t)
	url, err := s.m.AddFile(t.Context(), "ann", work.File{Type: "image/png", Name: "lamp.png", Data: []byte("x")})
	require.NoError(t, err)
	part := object{"type": "file", "mediaType": "image/png", "filename": "lamp.png", "url": "/files/" + strings.TrimPrefix(url, "agent-file:")}
	said := object{"id": "u1", "role": "user", "parts": []object{part, {"type": "text", "text": "Look"}}}
	for range 2 { // the second time, it is known
		s.post(object{"id": "c", "trigger": "submit-message", "messages": []object{said}})
	}
	loaded := s.load("c").Messages
	require.Len(t, loaded, 2)
	require.Equal(t, part, loaded[0]["parts"].([]any)[0])
	v, err := s.m.View(t.Context(), "ann/c")
	require.NoError(t, err)
	require.Contains(t, string(state.Messages.GetOr(v.State(), nil)[0].Raw()), url)
	threads := 0
	for range s.m.Threads(t.Context(), "ann", "") {
		threads++
	}
	require.Equal(t, 1, threads, "it is no edit")
}

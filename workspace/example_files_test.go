package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
	pages "github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// A user uploads a picture, and says something about it. The conversation refers to the
// picture, and requests to models have it.
func ExampleManager_AddFile() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(ctx context.Context, run *workspace.Run) error {
			said := state.Messages.GetOr(run.State(), nil)
			sent, err := transcript.WithFiles(ctx, said) // package wire does it by itself
			fmt.Println(strings.Contains(string(said[0].Raw()), "agent-file:"), strings.Contains(string(sent[0].Raw()), "data:image/png;base64,"))
			return err
		},
	})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	picture := work.File{Type: "image/png", Name: "lamp.png", Data: []byte("\x89PNG…")}
	url, err := m.AddFile(ctx, "ann", picture)
	if err != nil {
		panic(err)
	}
	content, err := pages.Content(
		pages.Part{Kind: pages.MediaPart, Media: &pages.Media{Type: picture.Type, Name: picture.Name, URL: url}},
		pages.Part{Kind: pages.Text, Text: "Is this lamp broken?"},
	)
	if err != nil {
		panic(err)
	}
	_, err = m.Handle(ctx, workspace.Thread("ann", "1"), workspace.Message{Content: content})
	if err != nil {
		panic(err)
	}
	f, err := m.File(ctx, "ann", url)
	fmt.Println(f.Name, err)
	_, err = m.File(ctx, "bob", url)
	fmt.Println(errors.Is(err, workspace.ErrNotFound))
	// Output:
	// true true
	// lamp.png <nil>
	// true
}

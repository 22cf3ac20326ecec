package transcript

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
)

// WithFiles returns messages with the data of the files of the user to which they
// refer, as package workspace keeps them: see workspace.Manager.AddFile. ctx is that of
// a run of a workspace. It is for programs that make requests without wire or an
// adapter. The result is for one request, and not to be stored.
//
// No secrets are masked. A text stands for a file that the user does not have, and for
// the first ones if all have more than 32 MiB. The error is that of a store that does
// not answer.
func WithFiles(ctx context.Context, msgs []state.Message) ([]state.Message, error) {
	shown, _, err := runctx.OpenFiles(ctx, msgs, func(_ string, f runctx.File) string {
		return base64.StdEncoding.EncodeToString(f.Data)
	})
	if err != nil {
		return nil, fmt.Errorf("transcript: files: %w", err)
	}
	return shown, nil
}

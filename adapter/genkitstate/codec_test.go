package genkitstate_test

import (
	"os"
	"testing"

	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/provider/providertest"
)

func TestCodec(t *testing.T) {
	providertest.Run(t, genkitstate.Format, os.DirFS("testdata/recordings"))
}

package crash_test

import (
	"flag"
	"testing"

	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/internal/test/mutation"
)

// programs are those of all parts. <part>_mistakes_test.go appends its own in
// an init function, and <part>_mutants_test.go adds mutants: each removes one
// check.
var (
	programs []mistakes.Program
	mutants  = map[string][]mutation.Mutant{}
)

var update = flag.Bool("update", false, "write the files of testdata")

func TestSound(t *testing.T)          { mistakes.Sound(t, programs) }
func TestBroken(t *testing.T)         { mistakes.Broken(t, programs) }
func TestMistakes(t *testing.T)       { mistakes.Find(t, programs, *update) }
func TestMutantsCompile(t *testing.T) { mistakes.CompileMutants(t, mutants) }
func TestMutants(t *testing.T)        { mistakes.FindMutants(t, mutants) }

func TestEachFileOfAFailureBelongsToAProgram(t *testing.T) { mistakes.CheckFiles(t, programs) }

// Persist shows a state that outlives the process: exported to a file and
// imported again, here with a newer schema.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentstate/state"
)

var (
	Score   = &state.Field[int]{Name: "score"}
	Due     = &state.Field[string]{Name: "due"}
	Scratch = &state.Field[string]{Name: "scratch", Ephemeral: true}
	Key     = &state.Field[string]{Name: "api_key", Secret: true}
	before  = state.MustSchema(Score, Due, Scratch, Key)

	// The next release has other types for two of the fields, and a new one.
	Points  = &state.Field[float64]{Name: "score"}
	DueDate = &state.Field[state.Time]{Name: "due"}
	Level   = &state.Field[string]{Name: "level"}
	after   = state.MustSchema(Points, DueDate, Level, Scratch, Key)
)

func main() {
	dir, err := os.MkdirTemp("", "persist")
	check(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "state.json")

	st := state.New(before)
	check(st.Patch(map[string]any{"score": 7, "due": "2027-01-31", "scratch": "for this run only", "api_key": "sk_82Kd0xyz"}))
	check(st.History().Append(state.InferenceResult{Agent: "judge", Output: []state.Message{state.AssistantText("Well done.")}}))

	// An export is whole: it holds the secrets, so keep it where secrets are kept.
	// For people and logs there is the masked view instead.
	data, err := st.Export()
	check(err)
	check(os.WriteFile(path, data, 0o600))
	view, err := json.Marshal(st)
	check(err)
	fmt.Println("view:    ", string(view))

	// Another process, and a newer binary. Values are converted if nothing is lost.
	data, err = os.ReadFile(path)
	check(err)
	back, err := state.Import(after, data)
	check(err)
	key, err := Key.Get(back)
	check(err)
	last, _ := back.History().Last()
	fmt.Println("imported:", Points.Or(back, 0), DueDate.Or(back, state.Time{}).Time().Weekday(), "at version", back.Version())
	fmt.Println("history: ", last.Agent, last.Output)
	fmt.Println("secret:  ", len(key), "characters; scratch is there:", Scratch.Has(back))

	// EndRun drops what was meant for one run only.
	fmt.Println("scratch before the end of the run:", Scratch.Has(st))
	check(st.EndRun())
	fmt.Println("and after it:                     ", Scratch.Has(st))

	// Damage is an error that says where, never an empty state.
	_, err = state.Import(after, data[:len(data)/2])
	fmt.Println("damaged: ", err != nil)
	_, err = state.Import(after, []byte(`{"format":1,"version":3,"fields":[{"name":"score","value":"seven"}]}`))
	fmt.Println(err)
	_, err = state.Import(after, []byte(`{"format":2}`))
	fmt.Println(err)
	fmt.Println(json.Unmarshal(view, st))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Watch shows a loop that follows what others write, such as the part of a
// program that shows progress to a user.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

var (
	Step   = &state.Field[string]{Name: "step", Read: state.Public, Write: state.Public}
	Done   = &state.Field[float64]{Name: "done", Read: state.Public, Write: state.Public}
	Key    = &state.Field[string]{Name: "api_key", Read: state.Only("worker"), Secret: true}
	schema = state.MustSchema(state.Team{"worker": nil, "screen": nil}, Step, Done, Key)
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st := state.New(schema)

	// The worker writes, in its own time.
	go func() {
		worker := st.As("worker")
		check(Key.Set(st, "sk_live_82Kd0"))
		for i, step := range []string{"reading", "thinking", "writing"} {
			check(worker.Update(func(tx *state.State) error {
				if err := Step.Set(tx, step); err != nil {
					return err
				}
				return Done.Set(tx, float64(i+1)/3)
			}))
		}
	}()

	// The screen follows, with its own rights: it never hears of the key, and its
	// versions have no gaps. The loop holds no lock, and misses nothing however
	// slow it is, as long as the journal reaches back to where it is.
	for c, err := range st.As("screen").Watch(ctx, 0) {
		check(err)
		fmt.Printf("version %d: %s is %v\n", c.Version, c.Field, c.Value)
		if c.Field == "done" && c.Value == 1.0 {
			break
		}
	}

	// With names it follows only these fields, here from the first version on.
	fmt.Println("\nonly step:")
	n := 0
	for c, err := range st.Watch(ctx, 0, "step") {
		check(err)
		fmt.Printf("version %d: %v by %s\n", c.Version, c.Value, c.Agent)
		if n++; n == 3 {
			cancel() // the loop ends with its context, too
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

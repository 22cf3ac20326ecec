// Branches shows agents that work in parallel, each in a branch of the state,
// and what happens when the branches are joined.
package main

import (
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
)

var (
	Findings = &state.Field[[]string]{Name: "findings"}                               // a list: appends
	Cost     = &state.Field[int]{Name: "cost", Handler: state.Sum[int]()}             // adds
	Title    = &state.Field[string]{Name: "title"}                                    // replaces
	Angle    = &state.Field[string]{Name: "angle", Handler: state.LastWins[string]()} // the last branch decides
	schema   = state.MustSchema(Findings, Cost, Title, Angle)
)

func main() {
	st := state.New(schema)
	check(Findings.Set(st, []string{"the question"}))

	// Three searches at once, in no particular order. Nobody sees the others.
	topics := []string{"history", "science", "art"}
	branches := make([]*state.State, len(topics))
	var wg sync.WaitGroup
	for i, topic := range topics {
		branch := st.Fork()
		branches[i] = branch
		wg.Go(func() {
			time.Sleep(rand.N(3 * time.Millisecond))
			check(Findings.Set(branch, []string{topic}))
			check(Cost.Set(branch, 10))
			check(Angle.Set(branch, topic))
			if got := Findings.Or(branch, nil); len(got) != 2 {
				log.Fatal("a branch has seen another's writes: ", got)
			}
		})
	}
	wg.Wait()
	fmt.Println("before:", Findings.Or(st, nil), "cost", Cost.Or(st, 0))

	// The result depends on the order of the arguments, never on timing.
	check(st.Join(branches...))
	fmt.Println("joined:", Findings.Or(st, nil), "cost", Cost.Or(st, 0), "angle", Angle.Or(st, ""))
	fmt.Println("as one version:", st.Version())
	fmt.Println("again: ", st.Join(branches[0]))

	// Two branches that overwrite the same field do not combine. Nothing of
	// either is applied, and both can still be used.
	check(Title.Set(st, "Draft"))
	a, b := st.Fork(), st.Fork()
	check(Title.Set(a, "A short history"))
	check(Title.Set(b, "The long story"))
	check(Findings.Set(b, []string{"music"}))
	err := st.Join(a, b)
	fmt.Println("\nconflict:", err, errors.Is(err, state.ErrConflict))
	fmt.Println("title:   ", Title.Or(st, ""), "-", state.Len(st, Findings), "findings")

	// The cure: decide. Here b takes its title back; what is left combines.
	check(Title.Set(b, "Draft"))
	check(st.Join(a, b))
	fmt.Println("settled: ", Title.Or(st, ""), "-", strings.Join(Findings.Or(st, nil), ", "))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

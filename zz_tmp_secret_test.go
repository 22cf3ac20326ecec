package state_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"reflect"
	"github.com/agentstate/state"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
)

func TestZZ(t *testing.T) {
	rng := rand.New(rand.NewPCG(0, 4))
	v := newVault(t)
	st, other := state.New(v.schema), state.New(v.schema)
	v.fill(t, st, secretValue(rng), 5)
	v.fill(t, other, secretValue(rng), 5)
	tm := func(n string, f func()) {
		done := make(chan bool)
		at := time.Now()
		go func() { f(); close(done) }()
		select {
		case <-done:
			fmt.Println(n, time.Since(at))
		case <-time.After(5 * time.Second):
			fmt.Println(n, "SLOW")
		}
	}
	var s sayings
	tm("equal", func() { assert.Equal(&s, st, other) })
	fmt.Println(s.Len())
	tm("list", func() { assert.Equal(&s, []any{st.KV(), st.History()}, []any{other.KV(), other.History()}) })
	fmt.Println(s.Len())
	tm("evalues", func() { assert.EqualValues(&s, st, other.Snapshot()) })
	tm("elements", func() { assert.ElementsMatch(&s, []*state.State{st}, []*state.State{other}) })
	fmt.Println(s.Len())
	tm("rest", func() {
		assert.Contains(&s, []*state.State{st}, other)
		assert.Nil(&s, st)
		assert.Empty(&s, st)
		assert.IsType(&s, st, 1)
		assert.NotEqual(&s, st, st)
	})
	tm("cmp", func() { defer func() { recover() }(); cmp.Diff(st, other) })
	tm("cmpall", func() {
		defer func() { recover() }()
		x := cmp.Diff(st, other, cmp.Exporter(func(reflect.Type) bool { return true }))
		fmt.Println(len(x))
	})
}

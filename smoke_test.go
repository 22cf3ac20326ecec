package state_test

import (
	"fmt"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

type Document struct {
	Title string   `json:"title"`
	Tags  []string `json:"tags"`
}

var (
	orderID = &state.Field[string]{Name: "order_id", Owner: "support", Read: state.Public}
	docs    = &state.Field[[]Document]{Name: "documents", Owner: "retriever", Read: state.Public}
	token   = &state.Field[string]{Name: "payment_token", Owner: "support", Read: state.Only("billing"), Secret: true}
	cost    = &state.Field[float64]{Name: "cost", Read: state.Public, Write: state.Public, Handler: state.Sum[float64]()}
	visits  = &state.Field[int]{Name: "visits", Read: state.Public, Write: state.Public}
	schema  = state.MustSchema(state.Team{"support": {"billing", "general", "retriever"}}, orderID, docs, token, cost, visits)
)

func TestSmoke(t *testing.T) {
	st := state.New(schema)
	require.NoError(t, orderID.Set(st, "#1"))
	require.NoError(t, docs.Set(st, []Document{{Title: "a", Tags: []string{"x"}}}))
	require.NoError(t, docs.Set(st.As("retriever"), []Document{{Title: "b"}}))
	require.NoError(t, cost.Set(st, 0.5))
	require.NoError(t, cost.Set(st.As("general"), 0.5))
	require.NoError(t, token.Set(st, "tok_123456"))
	_, err := token.Get(st.As("general"))
	require.ErrorIs(t, err, state.ErrDenied)
	fmt.Println(err)
	got, err := docs.Get(st)
	require.NoError(t, err)
	fmt.Println(got, st, st.As("general"))
	fmt.Printf("%+v\n", st)
	require.NoError(t, st.History().Append(state.InferenceResult{Agent: "general", Output: []state.Message{state.AssistantText("hi")}, Prompt: []state.Message{state.SystemText("p")}}))
	data, err := st.Export()
	require.NoError(t, err)
	fmt.Println(string(data))
	back, err := state.Import(schema, data)
	require.NoError(t, err)
	data2, err := back.Export()
	require.NoError(t, err)
	require.Equal(t, string(data), string(data2))
	a, b := st.Fork(), st.Fork()
	require.NoError(t, docs.Set(a, []Document{{Title: "c"}}))
	require.NoError(t, docs.Set(b, []Document{{Title: "d"}}))
	require.NoError(t, st.Join(b, a))
	require.Equal(t, 4, state.Len(st, docs))
	for c, err := range st.Changes(0) {
		fmt.Printf("%+v %v\n", c, err)
	}
	require.NoError(t, st.Update(func(tx *state.State) error {
		n, _ := visits.Get(tx)
		return visits.Set(tx, n+1)
	}))
	past, err := st.At(2)
	require.NoError(t, err)
	fmt.Println(past, st.Version(), st.As("general").Version())
	require.NoError(t, st.Revert(past))
	fmt.Printf("%+v\n", st)
	fmt.Println(st.Redact("pay tok_123456 now"))
}

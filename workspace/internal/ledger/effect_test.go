package ledger

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

func TestEffectsAreArrays(t *testing.T) {
	for text, e := range map[string]state.Effect{
		`["set","key","a b",{"x":[1]}]`:                                           {Kind: "set", Part: "key", Field: "a b", Value: `{"x":[1]}`},
		`["append","field","log",["a"],{"agent":"desk"}]`:                         {Kind: "append", Part: "field", Field: "log", Value: `["a"]`, Agent: "desk"},
		`["insert","field","log",0,["a"],{"agent":"a","cause":"because \"so\""}]`: {Kind: "insert", Part: "field", Field: "log", Value: `["a"]`, Agent: "a", Cause: `because "so"`},
		`["drop_first","conversation","entries",3]`:                               {Kind: "drop_first", Part: "conversation", Field: "entries", N: 3},
		`["truncate","field","log",0]`:                                            {Kind: "truncate", Part: "field", Field: "log"},
		`["remove_at","field","log",1,{"cause":"c"}]`:                             {Kind: "remove_at", Part: "field", Field: "log", N: 1, Cause: "c"},
		`["delete","message","12"]`:                                               {Kind: "delete", Part: "message", Field: "12"},
	} {
		data, err := appendEffect(nil, &e)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
		var again storedEffect
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, e, state.Effect(again))
	}
	_, err := appendEffect(nil, &state.Effect{Kind: "swap"})
	require.EqualError(t, err, `workspace: an effect of the kind "swap"`)
}

func TestEffectsThatAreNone(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `["set","key"]`, `["set","key","a"]`, `["set","key","a",1,2]`, `["set","key","a",1,{},3]`, `["set",1,"a",1]`,
		`["insert","key","a",1]`, `["insert","key","a","1",[]]`, `["delete","key","a",1]`, `["truncate","key","a"]`,
		`["truncate","key","a",1.5]`, `["swap","key","a",1]`,
	} {
		var e storedEffect
		require.Error(t, json.Unmarshal([]byte(text), &e), text)
	}
}

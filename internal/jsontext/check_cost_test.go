package jsontext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort"
)

func TestManyMembersAreLinear(t *testing.T) {
	effort.Cost(t)
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	text := `{` + b.String()[1:]
	require.NoError(t, jsontext.Check([]byte(text+`}`), jsontext.Limits{}))
	require.EqualError(t, jsontext.Check([]byte(text+`,"k777":1}`), jsontext.Limits{}), "$.k777: the member occurs twice")
}

package jsontext_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/jsontext"
)

func TestMarshalDoesNotEscapeForHTML(t *testing.T) {
	text, err := jsontext.Marshal(map[string]string{"<a>": "x & y\n"})
	require.NoError(t, err)
	require.Equal(t, `{"<a>":"x & y\n"}`, string(text))
	_, err = jsontext.Marshal(math.NaN())
	require.Error(t, err)
}

package statetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

func TestInputIsCheckedAgainstTheSchemaOfTheTool(t *testing.T) {
	const amount = `{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"],"additionalProperties":false}`
	for _, tt := range []struct{ name, schema, input, want string }{
		{"fits", amount, `{"amount":1.5}`, ""},
		{"no schema", "", `{"anything":1}`, ""},
		{"no input", `{"type":"object"}`, "", ""},
		{"no input where one is required", amount, "", "required"},
		{"a wrong type", amount, `{"amount":"1.5"}`, "amount"},
		{"an unknown argument", amount, `{"amount":1,"to":"me"}`, "to"},
		{"Gemini's types", `{"type":"OBJECT","properties":{"type":{"type":"STRING"}}}`, `{"type":1}`, "type"},
		{"Gemini's types fit", `{"type":"OBJECT","properties":{"type":{"type":"STRING"}}}`, `{"type":"A"}`, ""},
		{"not a schema", `[]`, `{}`, "invalid schema"},
		{"not JSON", amount, `{`, "not JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkInput(state.JSON(tt.schema), state.JSON(tt.input))
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

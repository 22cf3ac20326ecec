package state_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/agentstate/state"
)

func ExampleField_evolution() {
	// The program that wrote this had a field "order", and "amount" was a text.
	stored := []byte(`{"format":1,"version":2,"fields":[{"name":"order","value":"W2378156"},{"name":"amount","value":"119.90"}]}`)

	orderID := &state.Field[string]{Name: "order_id", Was: []string{"order"}}
	amount := &state.Field[int]{Name: "amount", Convert: func(former state.JSON) (int, error) {
		var euros string
		if err := json.Unmarshal([]byte(former), &euros); err != nil {
			return 0, err
		}
		value, err := strconv.ParseFloat(euros, 64)
		return int(math.Round(100 * value)), err
	}}
	st, err := state.Import(state.MustSchema(orderID, amount), stored)
	fmt.Println(orderID.Or(st, ""), amount.Or(st, 0), err)
	// Output: W2378156 11990 <nil>
}

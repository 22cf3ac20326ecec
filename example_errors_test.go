package state_test

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
)

// A sentinel tells the kind of an error, and a type has the details.
func Example_errors() {
	order := &state.Field[string]{Name: "order_id", Owner: "support"}
	amount := &state.Field[int]{Name: "amount", Owner: "support", Validate: func(n int) error {
		if n < 0 {
			return errors.New("an amount is not negative")
		}
		return nil
	}}
	st := state.New(state.MustSchema(state.Team{"support": {"billing"}}, order, amount))
	support, billing := st.As("support"), st.As("billing")

	for _, err := range []error{
		support.KV().Set("order-id", "A-1"),
		support.KV().Set("amount", "12"),
		amount.Set(support, -1),
		amount.Set(billing, 12),
	} {
		var typeError *state.TypeError
		switch {
		case errors.Is(err, state.ErrUnknownField), errors.Is(err, state.ErrRefused):
			fmt.Println("tell the model:", err)
		case errors.As(err, &typeError):
			fmt.Println("tell the model:", typeError.Field, "is", typeError.Want)
		case errors.Is(err, state.ErrDenied):
			fmt.Println("a mistake of the program:", err)
		}
	}
	// Output:
	// tell the model: state: "order-id": unknown field; did you mean "order_id"?
	// tell the model: amount is integer
	// tell the model: state: "amount": an amount is not negative
	// a mistake of the program: state: set "amount": access denied to agent "billing"
}

// The text of a panic is not in the error, which may be logged or shown to a
// model.
func ExamplePanicError() {
	total := &state.Field[int]{Name: "total", Handler: state.NewHandler("average", func(current int, _ bool, update int) (int, error) {
		return (current + update) / (update - 1), nil
	})}
	st := state.New(state.MustSchema(total))
	err := total.Set(st, 1)
	fmt.Println(err)
	var p *state.PanicError
	fmt.Println(errors.As(err, &p), p.Func, "-", p.Value, len(p.Stack) > 0)
	// Output:
	// state: "total": handler average panicked with a runtime.errorString
	// true handler average - runtime error: integer divide by zero true
}

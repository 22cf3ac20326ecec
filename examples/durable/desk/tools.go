package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
)

var (
	OrderID  = &state.Field[string]{Name: "order_id", Description: "The order the customer is asking about."}
	Refunded = &state.Field[float64]{Name: "refunded", Description: "In euros.", Handler: state.Sum[float64]()}
	schema   = state.MustSchema(OrderID, Refunded)
)

// shop stands for an external system that knows nothing of runs.
type shop struct {
	orders *store.Manager
	slow   time.Duration
}

func (s *shop) tools() []*tool.Tool {
	type in struct {
		Order string `json:"order"`
	}
	type out struct {
		Order    string  `json:"order"`
		Refunded float64 `json:"refunded,omitempty"`
	}
	return []*tool.Tool{
		tool.Must(tool.New("look_up_order", "Look up an order.",
			func(_ context.Context, in in) (out, error) { return out{Order: in.Order}, nil },
			tool.To(OrderID, "order"))),
		tool.Must(tool.New("refund", "Refund the order that was looked up.",
			func(ctx context.Context, in in) (out, error) {
				call, _ := tool.CallOf(ctx)
				return out{in.Order, 30}, s.refund(ctx, in.Order, call.Key)
			},
			tool.From(OrderID, "order"), tool.To(Refunded, "refunded"))),
	}
}

// errRefunded is the answer of the shop to a second refund of an order.
var errRefunded = errors.New("the order was refunded before")

// refund refunds an order once. A repeated request with the same key, for
// example after a crash before the answer, gets the same answer. A request whose
// outcome is unknown is repeated: an error would tell the model, and so the
// customer, that there was no refund.
func (s *shop) refund(ctx context.Context, order, key string) error {
	did, err := s.refundOnce(ctx, order, key)
	for n := 1; n < 4 && err != nil && !errors.Is(err, errRefunded); n++ {
		if err := sleep(ctx, time.Duration(n)*100*time.Millisecond); err != nil {
			return err
		}
		did, err = s.refundOnce(ctx, order, key)
	}
	if err != nil {
		return err
	}
	say("shop", "%s %s", did, order)
	return sleep(ctx, s.slow)
}

func (s *shop) refundOnce(ctx context.Context, order, key string) (did string, err error) {
	_, err = s.orders.Update(ctx, order, func(by string, refunded bool) (string, error) {
		switch {
		case !refunded:
			did = "refunds"
		case by == key:
			did = "has refunded"
		default:
			return "", errRefunded
		}
		return key, nil
	})
	return did, err
}

// sleep waits for d, less if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

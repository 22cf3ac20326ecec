package crash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// A workflow pays an invoice. The key of the effect stays the same when another
// process continues the run, so that the invoice is paid once.
func ExampleTest() {
	paid := &state.Field[bool]{Name: "paid"}
	test := func(t *testing.T) { // TestInvoiceSurvivesCrashes
		crash.Test{
			Open: func(p *crash.Process) *workspace.Options {
				pay := func(ctx context.Context, run *workspace.Run) error {
					if _, err := p.Effect(ctx, "pay", run.ID()+"/invoice", "#1"); err != nil {
						return workspace.RetryAfter(err, time.Second)
					}
					return paid.Replace(run.State(), true)
				}
				return &workspace.Options{Schema: state.MustSchema(paid), Run: pay}
			},
			Messages: []workspace.Message{{ID: "1", Content: state.UserText("Pay invoice #1.")}},
		}.Run(t)
	}
	fmt.Println("passes:", passes(test))
	// Output: passes: true
}

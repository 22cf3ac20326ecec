package looptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// Asker is a way to ask the scripted model of a process.
type Asker func(p *crash.Process, replies ...statetest.Reply) func(context.Context, *loop.Turn) error

// OverOpenAI asks the API of OpenAI through package wire.
func OverOpenAI(p *crash.Process, replies ...statetest.Reply) func(context.Context, *loop.Turn) error {
	return overHTTP(p.Model(provider.OpenAI, replies...), "/v1/chat/completions",
		`{"model":"m","stream":true,"messages":[]}`)
}

// OverAnthropic asks the API of Anthropic through package wire.
func OverAnthropic(p *crash.Process, replies ...statetest.Reply) func(context.Context, *loop.Turn) error {
	return overHTTP(p.Model(provider.Anthropic, replies...), "/v1/messages",
		`{"model":"m","max_tokens":100,"stream":true,"messages":[]}`)
}

// ByAsk asks without a request of HTTP.
func ByAsk(p *crash.Process, replies ...statetest.Reply) func(context.Context, *loop.Turn) error {
	return p.Model(provider.OpenAI, replies...).Ask
}

// overHTTP asks a model with nothing but a client and package wire.
func overHTTP(m *statetest.Model, path, body string) func(context.Context, *loop.Turn) error {
	client := &http.Client{Transport: &wire.Transport{Base: m}}
	return func(ctx context.Context, _ *loop.Turn) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://model"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, answer)
		}
		return err
	}
}

// ModelOutages returns the tests of loops whose model is away for a while: it is
// asked again, in the same run.
func ModelOutages(ask Asker) map[string]crash.Test {
	tests := map[string]crash.Test{}
	for name, outage := range map[string][]statetest.Reply{
		"429":                     {statetest.Status(http.StatusTooManyRequests, `{"error":{"message":"slowly"}}`)},
		"503, twice":              {statetest.Status(http.StatusServiceUnavailable, `{}`).Times(2)},
		"a timeout":               {statetest.Fail(context.DeadlineExceeded)},
		"a broken connection":     {statetest.Fail(io.ErrUnexpectedEOF)},
		"a stream that breaks":    {statetest.Say("Half of an answer.").Cut(1)},
		"a stream without a word": {statetest.Say("Half of an answer.").Cut(0)},
		"a call that breaks":      {statetest.Call("pay", `{"amount":129.9}`).Cut(1)},
	} {
		pairs := -1
		if name == "503, twice" {
			pairs = 20
		}
		tests[name] = crash.Test{
			Open: func(p *crash.Process) *workspace.Options {
				replies := append(append(append([]statetest.Reply{}, outage...), statetest.Call("pay", `{"amount":129.9}`)),
					outage...)
				return billing(ask(p, append(replies, statetest.Say("Paid."))...), pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
			Pairs:    pairs,
		}
	}
	return tests
}

// StoreOutages returns the tests of loops whose store, which open makes as
// OpenStore of a crash.Test, is away for a while, and those that wait for it die.
func StoreOutages(open func(t testing.TB) func() store.Store) map[string]crash.Test {
	tests := map[string]crash.Test{}
	for at, name := range []string{"in the first request", "in a call", "in the last request"} {
		var away atomic.Bool
		var place int // of the case: the place that is reached next
		reach := func() {
			if place == at {
				away.Store(true)
				time.AfterFunc(outageTime, func() { away.Store(false) })
			}
			place++
		}
		tests[name] = crash.Test{
			OpenStore: func(t testing.TB) func() store.Store {
				handle, handles := open(t), 0
				place = 0
				return func() store.Store {
					if handles++; handles == 1 { // that of the test
						return handle()
					}
					return fakestore.New(handle(), func(_ context.Context, _ fakestore.Call, do func() error) error {
						if away.Load() {
							return errors.New("the store is away")
						}
						return do()
					})
				}
			},
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Call("pay", `{"amount":129.9}`), statetest.Say("Paid."))
				ask := func(ctx context.Context, turn *loop.Turn) error {
					reach()
					return m.Ask(ctx, turn)
				}
				made := tool.Must(tool.New("pay", "Pays.", func(ctx context.Context, in refundIn) (float64, error) {
					reach()
					_, err := Retried(ctx, p, "pay", callKey(ctx), in)
					return in.Amount, err
				}, tool.To(paid, "")))
				return billing(ask, made)
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		}
	}
	return tests
}

// outageTime is longer than the lease of a run.
const outageTime = 5 * time.Second

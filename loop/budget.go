package loop

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// Budget limits what the agents of a [Loop] spend. Tokens are those of requests and
// answers, as the provider reports them, and estimates where it reports none; see
// [transcript.EstimateTokens]. Requests are those that have been answered. Answers of
// agents that tools call count as well.
//
// A model is not asked if the request would pass a limit: Run ends with a [StopError]
// whose Stop is [state.StopBudget] and whose Word names the limit, as in "period
// tokens". Only the length of the last answer is not known before. The zero Budget
// has no limits, and neither has a number that is 0.
type Budget struct {
	// Tokens and Requests are those of one call of Run, or of one run of a workspace.
	Tokens, Requests int

	// PeriodTokens and PeriodRequests are those of a Period (default 24 hours). Periods
	// begin at multiples of their length, a day at midnight UTC.
	Period                       time.Duration
	PeriodTokens, PeriodRequests int
	// Spent is the field that counts what is spent in a Period. The program declares it
	// in its schema with the Handler [AddSpent], where pages and prompts see it, and
	// Run must be given a State that may write it. In a workspace, it is stored with
	// the answers. If it is Shared, all threads of a user count, each from the end of
	// its run on.
	Spent *state.Field[Spent]
}

// Spent is what has been spent in the period that begins at Since.
type Spent struct {
	Since    time.Time `json:"since"`
	Tokens   int       `json:"tokens"`
	Requests int       `json:"requests"`
}

// AddSpent returns the handler that adds what is spent in one period. A later period
// begins anew.
func AddSpent() state.Handler[Spent] { return addSpent }

var addSpent = state.NewHandler("add_spent", func(current Spent, _ bool, update Spent) (Spent, error) {
	switch update.Since.Compare(current.Since) {
	case -1: // of a period that is over
		return current, nil
	case 1:
		return update, nil
	}
	return Spent{current.Since, current.Tokens + update.Tokens, current.Requests + update.Requests}, nil
})

// check returns what is wrong with a Budget for a State.
func (b Budget) check(st *state.State) error {
	switch f := b.Spent; {
	case min(b.Tokens, b.Requests, b.PeriodTokens, b.PeriodRequests) < 0 || b.Period < 0:
		return invalid("Loop has a Budget with a negative limit")
	case f == nil && b.PeriodTokens+b.PeriodRequests > 0:
		return invalid("Loop has a Budget of a Period without Spent, the field that counts")
	case f == nil:
		return nil
	case f.Handler.Name() != addSpent.Name():
		return invalid("Budget.Spent needs the Handler loop.AddSpent, to count what is spent")
	default:
		if err := errors.Join(inside.CheckField(st, f.Name, f, nil), inside.CheckWrite(st, f.Name)); err != nil {
			return invalid("Budget.Spent: %w", err)
		}
		return nil
	}
}

// purse is what is left of a Budget.
type purse struct {
	Budget
	st    *state.State
	outer *purse // of the agent that has called this one by a tool

	mu               sync.Mutex
	tokens, requests int // of the run
}

// newPurse returns the purse of a Loop, which has what the run has spent before.
func (r *loopRun) newPurse(outer *purse) *purse {
	p, h := &purse{Budget: r.Budget, st: r.st, outer: outer, requests: r.steps}, r.st.History()
	for i := max(0, h.Len()-r.steps); i < h.Len(); i++ {
		last, _ := h.At(i)
		p.tokens += costOf(last, nil)
	}
	return p
}

// period returns what has been spent in the present period.
func (p *purse) period() Spent {
	since := time.Now().UTC().Truncate(cmp.Or(p.Period, 24*time.Hour))
	if spent := p.Spent.GetOr(p.st, Spent{}); !spent.Since.Before(since) {
		return spent
	}
	return Spent{Since: since}
}

// spend counts an answer in a turn that is about to be recorded.
func (p *purse) spend(t *Turn, r state.InferenceResult) error {
	for cost := costOf(r, state.Messages.GetOr(t.base, nil)); p != nil; p = p.outer {
		p.mu.Lock()
		p.tokens, p.requests = p.tokens+cost, p.requests+1
		p.mu.Unlock()
		if p.Spent == nil {
			continue
		}
		if err := p.Spent.Set(p.st, Spent{p.period().Since, cost, 1}); err != nil {
			return err
		}
	}
	return nil
}

// refuses returns the limit that the next request of a turn would pass, or "".
func (p *purse) refuses(t *Turn) string {
	for next := t.nextTokens(); p != nil; p = p.outer {
		p.mu.Lock()
		tokens, requests, period := p.tokens, p.requests, p.period()
		p.mu.Unlock()
		for _, limit := range []struct {
			name      string
			most, now int
		}{
			{"tokens", p.Tokens, tokens + next}, {"requests", p.Requests, requests + 1},
			{"period tokens", p.PeriodTokens, period.Tokens + next}, {"period requests", p.PeriodRequests, period.Requests + 1},
		} {
			if limit.most > 0 && limit.now > limit.most {
				return limit.name
			}
		}
	}
	return ""
}

// costOf returns the tokens of a request and its answer. The conversation is msgs if
// the result does not say what was sent of it.
func costOf(r state.InferenceResult, msgs []state.Message) int {
	if n := r.Usage.Input + r.Usage.Output; n > 0 {
		return n
	}
	if len(r.History) > 0 {
		msgs = r.History
	}
	return tokensOf(r.Prompt) + tokensOf(msgs) + tokensOf(r.Output)
}

func tokensOf(msgs []state.Message) (n int) {
	for _, m := range msgs {
		n += transcript.EstimateTokens(m)
	}
	return n
}

// nextTokens returns about how many tokens the next request of the agent has: those of
// the last one and its answer, and what was said since.
func (t *Turn) nextTokens() int {
	msgs := state.Messages.GetOr(t.base, nil)
	last, _ := t.lastAnswer()
	n := len(msgs)
	for n > 0 && !slices.ContainsFunc(last.Output, msgs[n-1].Equal) {
		n--
	}
	return costOf(last, msgs[:n]) + tokensOf(msgs[n:])
}

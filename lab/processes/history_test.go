package processes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
)

const users = 5

// historyTTL is the TTL of the Managers. It must be long enough for the processes to
// live from one heartbeat to the next, or there is nothing but takeovers.
const historyTTL = 500 * time.Millisecond

func TestHistory(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		operating(t, func() string { return sqlite(t) })
	})
	onServers(t, operating)
}

// checkTime is the time after which a history with too many unknown outcomes is
// given up: the search is exponential in them.
const checkTime = 30 * time.Second

// operating tests that concurrent operations of four processes are linearizable:
// messages, commits and ends of runs, views and updates. Processes are killed in between.
// A history that takes too long to check says nothing, so that another one is made.
func operating(t *testing.T, fresh func() string) {
	var err error
	for range 3 {
		if err = operateOnce(t, fresh()); !errors.Is(err, errNotChecked) {
			break
		}
		t.Log(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var errNotChecked = errors.New("the history takes too long to check")

func operateOnce(t *testing.T, address string) error {
	const (
		clients = 4  // of each process
		turns   = 20 // of each client: the search is exponential in what overlaps
	)
	n := effort.LogSeed(t)
	r := &race{ctx: t.Context(), task: task{Job: "operate", Address: address, TTL: historyTTL}, began: time.Now(),
		slots: make([]*process, 4), pools: map[*process][]handle{}, calls: map[string]int64{}}
	defer r.stop()
	for i := range r.slots {
		if err := r.fill(i); err != nil {
			return err
		}
	}
	errs := make([]error, len(r.slots)*clients)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			c := &client{race: r, slot: i / clients, number: i, random: rand.New(rand.NewPCG(n, uint64(i)))}
			errs[i] = c.run(turns, i%clients == 0)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.check(t, len(errs)*turns/2)
}

// race is one run of operating.
type race struct {
	ctx   context.Context
	task  task
	began time.Time

	mu      sync.Mutex
	slots   []*process
	pools   map[*process][]handle // the runs that each holds or has held
	history []porcupine.Operation
	calls   map[string]int64 // by the ids of runs, the times of the calls that began them
	last    int              // number of the last message
	all     []*process
}

// handle is a run that a process holds, or has held.
type handle struct {
	number  int // which the process has given it
	user    string
	run     string
	message string
	attempt int
	called  bool // its call of Handle can be abandoned
}

// input is an operation, and output its outcome.
type input struct {
	request
	lease   string // of the run
	run     string
	attempt int
}

type output struct {
	reply
	lease string // of the run that has begun
}

// leaseOf returns the name of the lease that a process has, or "".
func leaseOf(p *process, number int) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("%p/%d", p, number)
}

func (r *race) now() int64 { return int64(time.Since(r.began)) }

func (r *race) fill(slot int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := start(r.ctx, r.task, r.hear)
	if err == nil {
		r.slots[slot] = p
		r.all = append(r.all, p)
	}
	return err
}

func (r *race) stop() {
	for _, p := range r.all {
		p.Kill()
		<-p.Done()
	}
}

// hear notes a takeover, or the begin of a run that has waited. Its time is only
// known roughly: it came after the call that began the run.
func (r *race) hear(p *process, a reply) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool(p, handle{number: a.Handle, user: a.User, run: a.Run, message: a.Message, attempt: a.Attempt})
	r.history = append(r.history, porcupine.Operation{
		ClientId: 100, Input: input{request{Op: "hold", User: a.User, Message: a.Message}, leaseOf(p, a.Handle), a.Run, a.Attempt},
		Output: output{reply: a}, Return: now,
	})
}

// pool keeps a handle among the last ones of a process.
func (r *race) pool(p *process, h handle) {
	r.pools[p] = append(r.pools[p], h)
	r.pools[p] = r.pools[p][max(0, len(r.pools[p])-4):]
}

// client operates through a process, concurrently with others. All times are read
// from one clock, that of the test.
type client struct {
	*race
	slot   int
	number int
	random *rand.Rand
}

// run takes the turns of a client. The killer kills its process twice.
func (c *client) run(turns int, killer bool) error {
	for turn := range turns {
		// Leases must have the time to expire.
		if err := nap(c.ctx, historyTTL*3/5); err != nil {
			return err
		}
		kills := killer && (turn+c.slot*turns/8)%(turns/2) == turns/4
		c.mu.Lock()
		p := c.slots[c.slot]
		q := c.choose(p)
		call := c.now()
		c.mu.Unlock()
		if kills {
			time.AfterFunc(time.Millisecond, p.Kill)
		}
		a, ok := p.Ask(q.request)
		if err := p.Problem(); err != nil {
			return err
		}
		if !ok {
			a = reply{Fate: unknown}
		}
		if a.Fate == failed {
			return fmt.Errorf("%s: %s", q.Op, a.Problem)
		}
		c.note(p, q, call, a)
		if kills {
			<-p.Done()
			if err := c.fill(c.slot); err != nil {
				return err
			}
		}
		if !ok && !kills { // until there is another process
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// choose returns the next operation.
func (c *client) choose(p *process) input {
	q := input{request: request{User: fmt.Sprint("user ", c.random.IntN(users))}}
	if pool := c.pools[p]; len(pool) > 0 && c.random.IntN(2) == 0 {
		h := &pool[max(c.random.IntN(len(pool)), c.random.IntN(len(pool)))]
		q.User, q.Message, q.Handle = h.user, h.message, h.number
		q.lease, q.run, q.attempt = leaseOf(p, h.number), h.run, h.attempt
		if q.Op = c.oneOf("commit", 6, "finish", 3, "fail", 1, "abandon", 2); q.Op == "abandon" {
			if !h.called {
				q.Op = "commit"
			}
			h.called = false
		}
		return q
	}
	switch q.Op = c.oneOf("send", 6, "view", 3, "update", 1); q.Op {
	case "send":
		c.last++
		message := c.last
		if c.random.IntN(6) == 0 {
			message = max(1, c.last-c.random.IntN(20)) // sent before, to any user
		}
		q.User = fmt.Sprint("user ", message%users)
		q.Message = fmt.Sprint("m", message)
		q.Busy = []workspace.WhenBusy{workspace.BusyEnqueue, workspace.BusyEnqueue, workspace.BusyEnqueue, workspace.BusyReject}[c.random.IntN(4)]
		if message%users == 0 && c.random.IntN(3) == 0 { // runs of other users last longer and are taken over
			q.Busy = []workspace.WhenBusy{workspace.BusyInterrupt, workspace.BusyRollback}[c.random.IntN(2)]
		}
	}
	return q
}

// oneOf returns one of the names at random, with the weight after each.
func (c *client) oneOf(weights ...any) string {
	var all []string
	for i := 0; i < len(weights); i += 2 {
		all = append(all, slices.Repeat([]string{weights[i].(string)}, weights[i+1].(int))...)
	}
	return all[c.random.IntN(len(all))]
}

// note adds an operation to the history, and the run that it has begun to the pool.
func (c *client) note(p *process, q input, call int64, a reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.Status == workspace.StatusStarted {
		c.calls[a.Run] = call
	}
	if a.Handle != 0 {
		c.pool(p, handle{number: a.Handle, user: q.User, run: a.Run, message: q.Message, called: true})
	}
	end := c.now()
	switch {
	case a.Fate == unknown && q.Op == "view":
		return // the outcome tells nothing
	case a.Fate == unknown, q.Op == "abandon":
		end = math.MaxInt64 // it may still take effect
	}
	c.history = append(c.history, porcupine.Operation{ClientId: c.number, Input: q, Call: call, Output: output{a, leaseOf(p, a.Handle)}, Return: end})
}

// check returns an error if the history is not linearizable, or if too little has
// happened for that to mean anything.
func (r *race) check(t *testing.T, enough int) error {
	r.mu.Lock()
	h := append(slices.Clone(r.history), r.silently()...)
	for i, op := range h {
		if q := op.Input.(input); q.Op == "hold" {
			h[i].Call = r.calls[q.run] // 0 if it is not known
		}
	}
	r.mu.Unlock()
	overlaps, refused := tame(h)
	takeovers := 0
	for _, op := range h {
		if q := op.Input.(input); q.Op == "hold" && q.attempt > 0 {
			takeovers++
		}
	}
	t.Logf("%d operations in %s: %d met another, %d were refused, %d takeovers",
		len(h), time.Since(r.began).Round(time.Millisecond), overlaps, refused, takeovers)
	if len(h) < enough || 100*overlaps < 30*len(h) || 100*refused < 5*len(h) || takeovers == 0 {
		return fmt.Errorf("the history proves too little")
	}
	result, info := porcupine.CheckOperationsVerbose(model, h, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errNotChecked
	}
	file, err := os.CreateTemp("", "processes-*.html")
	if err != nil {
		return fmt.Errorf("the history is not linearizable: %s", result)
	}
	defer func() { _ = file.Close() }()
	return errors.Join(fmt.Errorf("the history is not linearizable: %s: see %s", result, file.Name()), porcupine.Visualize(model, info, file))
}

// silently returns the takeovers that were not reported because their process was
// killed, but whose attempts later operations have seen.
func (r *race) silently() []porcupine.Operation {
	type try struct {
		user, run, message string
		attempt            int
	}
	told, seen := map[try]bool{}, map[try]bool{}
	for _, op := range r.history {
		q, a := op.Input.(input), op.Output.(output)
		of := try{q.User, q.run, q.Message, q.attempt}
		if q.Op == "view" {
			of.run, of.message, of.attempt = a.Run, a.Message, a.Attempt
		}
		if q.Op == "hold" {
			told[of] = true
		}
		for ; of.attempt > 0; of.attempt-- {
			seen[of] = true
		}
	}
	var ops []porcupine.Operation
	for of := range seen {
		if !told[of] {
			ops = append(ops, porcupine.Operation{
				ClientId: 101, Input: input{request: request{Op: "hold", User: of.user, Message: of.message}, run: of.run, attempt: of.attempt},
				Output: output{reply: reply{Fate: unknown}}, Return: math.MaxInt64,
			})
		}
	}
	return ops
}

// tame returns the number of operations that met another one in the same workspace,
// and the number that were refused.
func tame(h []porcupine.Operation) (overlaps, refused int) {
	for _, part := range partition(h) {
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		end := int64(-1)
		for i, op := range part {
			if end >= op.Call || i+1 < len(part) && part[i+1].Call <= op.Return {
				overlaps++
			}
			end = max(end, op.Return)
			a := op.Output.(output)
			if a.Fate != made && a.Fate != unknown || a.Status == workspace.StatusRejected || a.Status == workspace.StatusDuplicate {
				refused++
			}
		}
	}
	return overlaps, refused
}

func partition(h []porcupine.Operation) [][]porcupine.Operation {
	users := map[string][]porcupine.Operation{}
	for _, op := range h {
		user := op.Input.(input).User
		users[user] = append(users[user], op)
	}
	var parts [][]porcupine.Operation
	for _, part := range users {
		parts = append(parts, part)
	}
	return parts
}

// model returns the sequential model of a workspace.
var model = porcupine.Model{
	Partition: partition,
	Init:      func() any { return lock{} },
	Step: func(s, in, out any) (bool, any) {
		return afterwards(s.(lock), in.(input), out.(output))
	},
	DescribeOperation: func(in, out any) string {
		q, a := in.(input), out.(output)
		return fmt.Sprintf("%s %s/%d busy %d: %s %s %s %s steps %d", q.Op, q.Message, q.attempt, q.Busy, a.Fate, a.Status, a.Message, a.Snapshot, a.Steps)
	},
	DescribeState: func(s any) string { return fmt.Sprint(s) },
}

func afterwards(l lock, q input, a output) (bool, any) {
	mine := l.lease != "" && l.lease == q.lease
	switch q.Op {
	case "send":
		return sending(l, q, a)
	case "view":
		return a.Snapshot == l.String(), l
	case "update":
		return a.Fate == unknown || (a.Fate == made) == (l.message == ""), l
	case "hold":
		return holding(l, q, a)
	}
	// The rest is done by a holder.
	switch {
	case q.Op == "abandon":
		if mine {
			l.lease, l.vacant = "", true
		}
		return true, l
	case a.Fate == fenced || a.Fate == ended:
		return !mine, l
	case a.Fate == silent:
		return true, l // it gave up before others took over
	case !mine:
		return a.Fate == unknown, l
	case q.Op == "commit":
		l.steps++
		return a.Fate == unknown || a.Steps == l.steps, l
	case q.Op == "fail":
		l = l.forget(q.Message)
	}
	return true, l.next()
}

// holding is what happens when a Manager has a run for Options.Run: its own one that
// has waited, or one that it has taken over.
func holding(l lock, q input, a output) (bool, any) {
	waited := l.attempt == q.attempt && (l.vacant || l.lease == "")
	// A lease that was given back may be vacant no longer, or not have been.
	died := l.attempt == q.attempt-1
	if l.message != q.Message || !waited && !died {
		return a.Fate == unknown, l
	}
	l.attempt = q.attempt
	return a.Fate == unknown || a.Steps == l.steps, l.hold(q.lease)
}

func sending(l lock, q input, a output) (bool, any) {
	length := len(strings.Fields(l.queue))
	var want workspace.Status
	fate, then := made, l
	switch {
	case l.knows(q.Message):
		want = workspace.StatusDuplicate
	case l.message == "" || q.Busy == workspace.BusyInterrupt || q.Busy == workspace.BusyRollback:
		want, then = workspace.StatusStarted, l.begin(q.Message).accept(q.Message).hold(a.lease)
	case q.Busy == workspace.BusyReject:
		want = workspace.StatusRejected
	case length == queueMax:
		want, fate = workspace.StatusRejected, full
	default:
		want, then = workspace.StatusQueued, l.accept(q.Message)
		then.queue = strings.TrimSpace(l.queue + " " + q.Message)
	}
	switch a.Fate {
	case unknown:
		return true, then
	case fenced, silent: // lost before it was known to have begun
		return want == workspace.StatusStarted, then
	}
	return a.Status == want && a.Fate == fate, then
}

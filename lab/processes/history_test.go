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

	"github.com/agentstate/state/internal/effort"
	"github.com/agentstate/state/workspace"
)

const (
	historyTTL = 200 * time.Millisecond
	users      = 5
)

func TestHistory(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		operating(t, sqlite(t))
	})
	onServers(t, func(t *testing.T, fresh func() string) { operating(t, fresh()) })
}

// operating tests that concurrent operations of four processes are linearizable:
// begin, commit and end of runs, views and updates. One process is killed in the
// middle.
func operating(t *testing.T, address string) {
	const clients = 4 // of each process
	turns := 80
	if underRace() {
		turns = 20
	}
	n := effort.LogSeed(t)
	r := &race{ctx: t.Context(), task: task{Job: "operate", Address: address, TTL: historyTTL}, began: time.Now(),
		slots: make([]*process, 4), pools: map[*process][]handle{}, calls: map[lease]int64{}}
	defer r.stop()
	for i := range r.slots {
		if err := r.fill(i); err != nil {
			t.Fatal(err)
		}
	}
	errs := make([]error, len(r.slots)*clients)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			c := &client{race: r, slot: i / clients, number: i, random: rand.New(rand.NewPCG(n, uint64(i)))}
			errs[i] = c.run(turns, i == 0)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := r.check(t, len(errs)*turns/2); err != nil {
		t.Fatal(err)
	}
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
	calls   map[lease]int64 // the times of the calls that began them
	last    int             // number of the last message
	all     []*process
}

// handle is a run that a process holds.
type handle struct {
	number  int
	user    string
	message string
	attempt int
}

// input is an operation, and output its outcome.
type input struct {
	request
	attempt int // of the run of Message
}

type output struct{ reply }

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

// hear notes a takeover. Its time is only known roughly: it came after the call that
// gave the run to the holder before.
func (r *race) hear(p *process, a reply) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool(p, handle{a.Handle, a.User, a.Message, a.Attempt}, r.calls[lease{a.User, a.Message, a.Attempt - 1}])
	r.history = append(r.history, porcupine.Operation{
		ClientId: 100, Input: input{request{Op: "take over", User: a.User, Message: a.Message}, a.Attempt},
		Output: output{a}, Return: now,
	})
}

// pool keeps a handle among the last ones of a process. call is the time of the call
// that the handle came from.
func (r *race) pool(p *process, h handle, call int64) {
	r.calls[lease{h.user, h.message, h.attempt}] = call
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

// run takes the turns of a client. The killer kills its process in the middle.
func (c *client) run(turns int, killer bool) error {
	for turn := range turns {
		c.mu.Lock()
		p := c.slots[c.slot]
		q := c.choose(p)
		call := c.now()
		c.mu.Unlock()
		if killer && turn == turns/2 {
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
		if killer && turn == turns/2 {
			<-p.Done()
			if err := c.fill(c.slot); err != nil {
				return err
			}
		}
		if !ok && !killer { // until there is another process
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// choose returns the next operation.
func (c *client) choose(p *process) input {
	q := input{request: request{User: fmt.Sprint("user ", c.random.IntN(users))}}
	if pool := c.pools[p]; len(pool) > 0 && c.random.IntN(2) == 0 {
		h := pool[max(c.random.IntN(len(pool)), c.random.IntN(len(pool)))]
		q.User, q.Message, q.Handle, q.attempt = h.user, h.message, h.number, h.attempt
		q.Op = c.oneOf("commit", 6, "finish", 3, "fail", 1, "abandon", 2)
		return q
	}
	switch q.Op = c.oneOf("begin", 6, "view", 3, "update", 1); q.Op {
	case "begin":
		c.last++
		message := c.last
		if c.random.IntN(6) == 0 {
			message = max(1, c.last-c.random.IntN(20)) // sent before, to any user
		}
		q.User = fmt.Sprint("user ", message%users)
		q.Message = fmt.Sprint("m", message)
		q.Busy = []workspace.Busy{workspace.BusyEnqueue, workspace.BusyEnqueue, workspace.BusyEnqueue, workspace.BusyReject}[c.random.IntN(4)]
		if message%users == 0 && c.random.IntN(3) == 0 { // runs of other users last longer and are taken over
			q.Busy = []workspace.Busy{workspace.BusyInterrupt, workspace.BusyRollback}[c.random.IntN(2)]
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
	if a.Handle != 0 {
		message := q.Message
		if q.Op != "begin" {
			message = a.Message
		}
		c.pool(p, handle{a.Handle, q.User, message, 0}, call)
	}
	end := c.now()
	switch {
	case q.Op == "abandon":
		return // has changed nothing yet
	case a.Fate == unknown && q.Op == "view":
		return // the outcome tells nothing
	case a.Fate == unknown:
		end = math.MaxInt64 // it may still take effect
	}
	c.history = append(c.history, porcupine.Operation{ClientId: c.number, Input: q, Call: call, Output: output{a}, Return: end})
}

// check returns an error if the history is not linearizable, or if too little has
// happened for that to mean anything.
func (r *race) check(t *testing.T, enough int) error {
	r.mu.Lock()
	h := append(slices.Clone(r.history), r.silently()...)
	for i, op := range h {
		if q := op.Input.(input); q.Op == "take over" {
			h[i].Call = r.calls[lease{q.User, q.Message, q.attempt - 1}] // 0 if it is not known
		}
	}
	r.mu.Unlock()
	overlaps, refused := tame(h)
	takeovers := 0
	for _, op := range h {
		if op.Input.(input).Op == "take over" {
			takeovers++
		}
	}
	t.Logf("%d operations in %s: %d met another, %d were refused, %d takeovers",
		len(h), time.Since(r.began).Round(time.Millisecond), overlaps, refused, takeovers)
	if len(h) < enough || 100*overlaps < 30*len(h) || 100*refused < 5*len(h) || takeovers == 0 {
		return fmt.Errorf("the history proves too little")
	}
	result, info := porcupine.CheckOperationsVerbose(model, h, 0)
	if result == porcupine.Ok {
		return nil
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
	told, seen := map[handle]bool{}, map[handle]bool{}
	for _, op := range r.history {
		q, a := op.Input.(input), op.Output.(output)
		of := handle{user: q.User, message: q.Message, attempt: q.attempt}
		if q.Op == "view" {
			// The rest is the queue.
			text, _, _ := strings.Cut(a.Snapshot, ": ")
			of.message, text, _ = strings.Cut(text, "/")
			_, _ = fmt.Sscan(text, &of.attempt)
		}
		if q.Op == "take over" {
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
				ClientId: 101, Input: input{request{Op: "take over", User: of.user, Message: of.message}, of.attempt},
				Output: output{reply{Fate: unknown}}, Return: math.MaxInt64,
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
		return afterwards(s.(lock), in.(input), out.(output).reply)
	},
	DescribeOperation: func(in, out any) string {
		q, a := in.(input), out.(output)
		return fmt.Sprintf("%s %s/%d busy %d: %s %s %s %s steps %d", q.Op, q.Message, q.attempt, q.Busy, a.Fate, a.Status, a.Message, a.Snapshot, a.Steps)
	},
	DescribeState: func(s any) string { return fmt.Sprint(s) },
}

func afterwards(l lock, q input, a reply) (bool, any) {
	mine := l.holder != "" && l.holder == q.Message && l.attempt == q.attempt
	switch q.Op {
	case "begin":
		return beginning(l, q, a)
	case "view":
		return a.Snapshot == l.String(), l
	case "update":
		return a.Fate == unknown || (a.Fate == made) == (l.holder == ""), l
	case "take over":
		if l.holder != q.Message || l.attempt != q.attempt-1 {
			return a.Fate == unknown, l
		}
		l.attempt++
		return a.Fate == unknown || a.Steps == l.steps, l
	}
	// The rest is done by a holder.
	switch {
	case a.Fate == fenced || a.Fate == ended:
		return !mine, l
	case a.Fate == silent:
		return true, l // it gave up before others took over
	case !mine:
		return a.Fate == unknown, l
	case q.Op == "commit":
		l.steps++
		return a.Fate == unknown || a.Steps == l.steps, l
	}
	l = l.next()
	return a.Fate == unknown || a.Message == l.holder, l
}

func beginning(l lock, q input, a reply) (bool, any) {
	length := len(strings.Fields(l.queue))
	var want workspace.Status
	fate, then := made, l
	switch {
	case l.knows(q.Message):
		want = workspace.StatusDuplicate
	case l.holder == "" || q.Busy == workspace.BusyInterrupt || q.Busy == workspace.BusyRollback:
		want, then = workspace.StatusStarted, l.begin(q.Message).accept(q.Message)
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
	case fenced: // lost before it was known to have begun
		return want == workspace.StatusStarted, then
	}
	return a.Status == want && a.Fate == fate, then
}

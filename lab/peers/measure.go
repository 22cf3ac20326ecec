package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// farAway is the time of a round trip to a database that is not near.
const farAway = 2500 * time.Microsecond

// numbers gives each message of this process another id.
var numbers atomic.Int64

// A load is how many users send messages, each one after the other.
type load struct {
	users int
	warm  int // messages of each user before a round, at most
}

var loads = []load{{1, 20}, {100, 1}}

// names returns the users of a load. No user is in two loads.
func (l load) names() []string {
	names := make([]string, l.users)
	for i := range names {
		names[i] = fmt.Sprintf("user-%d-%d", l.users, i)
	}
	return names
}

// A round is what was measured of one contender in one round.
type round struct {
	times []time.Duration // of all messages, from sending to the answer
	took  time.Duration
	bytes int64 // that the engine wrote, or -1
	// what a proxy counted, if there was one
	trips, sent int64
}

func (r round) rate() float64 { return float64(len(r.times)) / r.took.Seconds() }

// A row is what was measured of one contender under one load.
type row struct {
	engine    string
	users     int
	contender string
	rounds    []round
	trips     float64 // round trips per message, or -1
	sent      float64 // bytes sent to the server per message, or -1
}

// values is what our Manager asks of its store for each message.
type values struct {
	engine               string
	users                int
	reads, writes, bytes float64
}

// A bench measures the contenders on one engine.
type bench struct {
	engine   string
	rounds   int
	duration time.Duration
	folder   string // for files of SQLite
	progress io.Writer

	sites map[string]site // the data sets of the contenders
}

// run measures all contenders in turns: each round opens a contender, measures
// it, and closes it, so that nothing of the others runs in the background. Data
// sets stay for the next round. If it fails, run returns what it has measured.
func (b *bench) run(ctx context.Context) (rows []row, asked []values, err error) {
	b.sites = map[string]site{}
	defer func() {
		for _, s := range b.sites {
			err = errors.Join(err, s.remove(context.WithoutCancel(ctx)))
		}
	}()
	for _, c := range contendersOn(b.engine) {
		if err := b.fill(ctx, c); err != nil {
			return rows, asked, fmt.Errorf("%s on %s: %w", c.name, b.engine, err)
		}
	}
	for _, l := range loads {
		near, err := b.turns(ctx, b.engine, l, nil)
		if err != nil {
			return rows, asked, err
		}
		rows = append(rows, near...)
	}
	for _, l := range loads {
		v, err := b.ask(ctx, l)
		if err != nil {
			return rows, asked, err
		}
		asked = append(asked, v)
	}
	if b.engine != "postgres" {
		return rows, asked, nil
	}
	p, err := newProxy(b.sites["ours"].server.Host, farAway)
	if err != nil {
		return rows, asked, err
	}
	defer p.close()
	for _, l := range loads {
		far, err := b.turns(ctx, b.engine+", "+farAway.String()+" away", l, p)
		if err != nil {
			return rows, asked, err
		}
		rows = append(rows, far...)
	}
	return rows, asked, nil
}

// fill makes the data set of a contender with states of full size.
func (b *bench) fill(ctx context.Context, c contender) error {
	s, err := newSite(ctx, b.engine, b.folder)
	if err != nil {
		return err
	}
	b.sites[c.name] = s
	_, _ = fmt.Fprintf(b.progress, "%s: fill %s\n", b.engine, c.name)
	h, err := c.open(ctx, s, scripted)
	if err != nil {
		return err
	}
	var users []string
	for _, l := range loads {
		users = append(users, l.names()...)
	}
	return errors.Join(h.fill(ctx, users), h.close())
}

// turns measures the contenders under a load, at the server or through a proxy.
func (b *bench) turns(ctx context.Context, label string, l load, p *proxy) ([]row, error) {
	contenders := contendersOn(b.engine)
	rows := make([]row, len(contenders))
	for n := range b.rounds {
		for i, c := range contenders {
			r, err := b.measure(ctx, c, l, p)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", c.name, b.engine, err)
			}
			rows[i].rounds = append(rows[i].rounds, r)
			_, _ = fmt.Fprintf(b.progress, "%s, %d users, round %d: %s: %.0f/s\n", label, l.users, n+1, c.name, r.rate())
		}
	}
	for i, c := range contenders {
		rows[i].engine, rows[i].users, rows[i].contender = label, l.users, c.name
		counted := rows[i].rounds
		if p == nil {
			one, err := b.count(ctx, c, l)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", c.name, b.engine, err)
			}
			counted = []round{one}
		}
		rows[i].trips, rows[i].sent = traffic(counted)
	}
	return rows, nil
}

// measure measures a contender in one round, in which it reaches the server
// through the proxy, if there is one.
func (b *bench) measure(ctx context.Context, c contender, l load, p *proxy) (round, error) {
	s := b.sites[c.name]
	if p != nil {
		s = s.through(p.address())
	}
	h, err := c.open(ctx, s, scripted)
	if err != nil {
		return round{}, err
	}
	r, err := b.meter(ctx, h, l, p)
	return r, errors.Join(err, h.close())
}

func (b *bench) meter(ctx context.Context, h handler, l load, p *proxy) (r round, err error) {
	m, err := newMeter(b.sites["ours"]) // any data set: servers count for all of them
	if err != nil {
		return round{}, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := b.warm(ctx, h, l); err != nil {
		return round{}, err
	}
	trips, sent := p.counts()
	before, unknown := m.read(ctx)
	if r, err = b.drive(ctx, h, l); err != nil {
		return round{}, err
	}
	after, err := m.read(ctx)
	r.trips, r.sent = p.counts()
	r.trips, r.sent, r.bytes = r.trips-trips, r.sent-sent, after-before
	if err == nil {
		err = unknown
	}
	if errors.Is(err, errNotMeasured) {
		r.bytes, err = -1, nil
	}
	return r, err
}

// count measures a contender once more behind a proxy that counts. The rounds
// that are timed have none in between.
func (b *bench) count(ctx context.Context, c contender, l load) (round, error) {
	server := b.sites[c.name].server
	if server == nil {
		return round{trips: -1, sent: -1}, nil
	}
	p, err := newProxy(server.Host, 0)
	if err != nil {
		return round{}, err
	}
	defer p.close()
	return b.measure(ctx, c, l, p)
}

// traffic returns the round trips and the bytes sent per message, or -1.
func traffic(rounds []round) (trips, sent float64) {
	if rounds[0].trips < 0 {
		return -1, -1
	}
	n := 0.0
	for _, r := range rounds {
		trips, sent, n = trips+float64(r.trips), sent+float64(r.sent), n+float64(len(r.times))
	}
	return trips / n, sent / n
}

// ask counts what our Manager asks of its store.
func (b *bench) ask(ctx context.Context, l load) (values, error) {
	h, c, err := openCounted(ctx, b.sites["ours"])
	if err != nil {
		return values{}, err
	}
	err = b.warm(ctx, h, l)
	reads, writes, bytes := c.reads.Load(), c.writes.Load(), c.bytes.Load()
	r, failed := b.drive(ctx, h, l)
	n := float64(len(r.times))
	return values{
		b.engine, l.users,
		float64(c.reads.Load()-reads) / n, float64(c.writes.Load()-writes) / n, float64(c.bytes.Load()-bytes) / n,
	}, errors.Join(err, failed, h.close())
}

// warm fills caches and opens connections, for no longer than a round.
func (b *bench) warm(ctx context.Context, h handler, l load) error {
	began := time.Now()
	return each(l.names(), func(user string) error {
		for n := 0; n < l.warm && (n == 0 || time.Since(began) < b.duration); n++ {
			if _, err := h.handle(ctx, newMessage(user, numbers.Add(1))); err != nil {
				return err
			}
		}
		return nil
	})
}

// drive lets each user send messages, one after the other, for a while.
func (b *bench) drive(ctx context.Context, h handler, l load) (round, error) {
	var mu sync.Mutex
	var r round
	began := time.Now()
	err := each(l.names(), func(user string) error {
		var times []time.Duration
		for time.Since(began) < b.duration {
			m := newMessage(user, numbers.Add(1))
			sent := time.Now()
			if _, err := h.handle(ctx, m); err != nil {
				return err
			}
			times = append(times, time.Since(sent))
		}
		mu.Lock()
		defer mu.Unlock()
		r.times = append(r.times, times...)
		return nil
	})
	r.took = time.Since(began)
	return r, err
}

// each calls do for each user at once, and returns an error of one of them.
func each(users []string, do func(user string) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(users))
	for _, user := range users {
		wg.Go(func() { errs <- do(user) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rate returns the median of the rounds.
func (r row) rate() float64 {
	rates := make([]float64, len(r.rounds))
	for i, one := range r.rounds {
		rates[i] = one.rate()
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// quantile returns a quantile of the times of all rounds.
func (r row) quantile(q float64) time.Duration {
	var times []time.Duration
	for _, one := range r.rounds {
		times = append(times, one.times...)
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))]
}

// bytes returns the median of the bytes written per message, or -1.
func (r row) bytes() float64 {
	bytes := make([]float64, len(r.rounds))
	for i, one := range r.rounds {
		if one.bytes < 0 {
			return -1
		}
		bytes[i] = float64(one.bytes) / float64(len(one.times))
	}
	slices.Sort(bytes)
	return bytes[len(bytes)/2]
}

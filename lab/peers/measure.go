package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// numbers gives each message of this process another id.
var numbers atomic.Int64

// loads are how many users send messages, each one after the other.
var loads = []int{1, 100}

// names returns the users of a load. No user is in two loads.
func names(load int) []string {
	names := make([]string, load)
	for i := range names {
		names[i] = fmt.Sprintf("user-%d-%d", load, i)
	}
	return names
}

// A row is what was measured of one contender under one load.
type row struct {
	engine    string
	users     int
	contender string
	rates     []float64       // of the rounds, in messages per second
	times     []time.Duration // of all messages, from sending to the answer
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
func (b *bench) run(ctx context.Context) (rows []row, err error) {
	b.sites = map[string]site{}
	defer func() {
		for _, s := range b.sites {
			err = errors.Join(err, s.remove(context.WithoutCancel(ctx)))
		}
	}()
	for _, c := range contendersOn(b.engine) {
		if err := b.fill(ctx, c); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", c.name, b.engine, err)
		}
	}
	for _, load := range loads {
		measured, err := b.turns(ctx, load)
		if err != nil {
			return rows, err
		}
		rows = append(rows, measured...)
	}
	return rows, nil
}

// fill makes the data set of a contender, and states of full size: the first
// messages of all users.
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
	for _, load := range loads {
		err = errors.Join(err, send(ctx, h, names(load), kept))
	}
	return errors.Join(err, h.close())
}

// turns measures the contenders under a load.
func (b *bench) turns(ctx context.Context, load int) ([]row, error) {
	contenders := contendersOn(b.engine)
	rows := make([]row, len(contenders))
	for n := range b.rounds {
		for i, c := range contenders {
			r := &rows[i]
			r.engine, r.users, r.contender = b.engine, load, c.name
			if err := b.measure(ctx, c, r); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", c.name, b.engine, err)
			}
			_, _ = fmt.Fprintf(b.progress, "%s, %d users, round %d: %s: %.0f/s\n", b.engine, load, n+1, c.name, r.rates[n])
		}
	}
	return rows, nil
}

// measure measures a contender in one round: each user sends messages, one after
// the other, for a while. The first ones fill caches and open connections, and
// do not count.
func (b *bench) measure(ctx context.Context, c contender, r *row) (err error) {
	h, err := c.open(ctx, b.sites[c.name], scripted)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	users := names(r.users)
	if err := send(ctx, h, users, 1); err != nil {
		return err
	}
	var mu sync.Mutex
	began, before := time.Now(), len(r.times)
	err = each(users, func(user string) error {
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
	r.rates = append(r.rates, float64(len(r.times)-before)/time.Since(began).Seconds())
	return err
}

// send lets each user send n messages.
func send(ctx context.Context, h handler, users []string, n int) error {
	return each(users, func(user string) error {
		for range n {
			if _, err := h.handle(ctx, newMessage(user, numbers.Add(1))); err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls do for each user at once, and returns an error of one of them.
func each(users []string, do func(user string) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(users))
	for i, user := range users {
		wg.Go(func() { errs[i] = do(user) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// writeTable writes the rows as a table of Markdown: the median of the rounds,
// and quantiles of the times of all messages.
func writeTable(w io.Writer, rows []row) error {
	lines := []string{"| engine | users | contender | messages/s | p50 ms | p99 ms |", "|---|---|---|---|---|---|"}
	for _, r := range rows {
		slices.Sort(r.rates)
		slices.Sort(r.times)
		quantile := func(q float64) float64 {
			return float64(r.times[int(q*float64(len(r.times)-1))]) / float64(time.Millisecond)
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %s | %.0f | %.2f | %.2f |",
			r.engine, r.users, r.contender, r.rates[len(r.rates)/2], quantile(0.5), quantile(0.99)))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

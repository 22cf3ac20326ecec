package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// result is what has become of the messages.
type result struct {
	durability string
	lines      []line
	lists      map[string][]string // the ids of each user, in the order of their effect
	rows       map[string]int      // the number of rows of each message, on an SQL server

	accepted, lost, lostDone, twice, stuck, dead int
	rolledBack                                   map[string]bool // users
	// strange are the users whose histories are not linearizable.
	strange []string
	logs    map[string]int // lines that processes have logged, and how often
}

// check reads what the processes have noted, and what is stored.
func (c *cluster) check() (*result, error) {
	r := &result{lists: map[string][]string{}, rows: map[string]int{}, rolledBack: map[string]bool{}, logs: map[string]int{}}
	for n := range processes {
		if err := errors.Join(r.readLines(n), r.readLog(n)); err != nil {
			return nil, err
		}
	}
	if err := r.readStore(c.engine.urls(c)[0]); err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, list := range r.lists {
		for _, id := range list {
			found[id]++
		}
	}
	for _, l := range r.lines {
		user, _, _ := strings.Cut(l.ID, "-")
		if l.RolledBack {
			r.rolledBack[user] = true
		}
		switch {
		case l.Accepted.IsZero():
			continue
		case found[l.ID] == 0 && l.Reason == "":
			r.lost++
			if !l.Answered.IsZero() {
				r.lostDone++
			}
		case l.Answered.IsZero():
			r.stuck++
		}
		if r.accepted++; l.Reason != "" {
			r.dead++
		}
	}
	for id, n := range found {
		if n > 1 || r.rows[id] > 1 || len(r.rows) > 0 && r.rows[id] == 0 {
			r.twice++
		}
	}
	for user, list := range r.lists {
		if !r.linearizable(user, list) {
			r.strange = append(r.strange, user)
		}
	}
	return r, nil
}

func (r *result) readLines(n int) error {
	data, err := os.ReadFile(filepath.Join(folder, fmt.Sprint("lines", n)))
	if err != nil {
		return err
	}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var l line
		if err := d.Decode(&l); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		r.lines = append(r.lines, l)
	}
}

// readLog counts the lines of a log, without what differs from one to another.
func (r *result) readLog(n int) error {
	in, err := os.Open(filepath.Join(folder, fmt.Sprint("log", n)))
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if d, ok := strings.CutPrefix(lines.Text(), "durability: "); ok {
			r.durability = d
		} else if _, text, ok := strings.Cut(lines.Text(), "level="); ok {
			r.logs[short(text)]++
		}
	}
	return lines.Err()
}

var differs = regexp.MustCompile(`u\d+(-\d+-\d+)?|[0-9a-f]{12,}|[0-9A-Za-z_-]{20,}|:\d{4,5}->|\d+(\.\d+)?(ms|s|µs)\b`)

// short returns a text without what differs in others of its kind.
func short(text string) string {
	text = differs.ReplaceAllString(text, "#")
	return text[:min(len(text), 300)]
}

// readStore reads what the store has of each user.
func (r *result) readStore(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := workspace.Open(ctx, store.ReadOnly(db), &workspace.Options{Schema: schema})
	if err != nil {
		return err
	}
	defer m.Close()
	for user, err := range m.List(ctx) {
		if err != nil {
			return err
		}
		v, err := m.View(ctx, user)
		if err != nil {
			return err
		}
		list := ids.GetOr(v.State(), nil)
		if n := count.GetOr(v.State(), 0); n != len(list) {
			return fmt.Errorf("the counter of %s is %d, and its list has %d ids", user, n, len(list))
		}
		if r.lists[user] = list; v.Run != nil || len(v.Queue) > 0 {
			r.stuck++
		}
		if _, err := m.Verify(ctx, user); err != nil {
			return err
		}
	}
	tx, ok := store.As[store.Transactor](db)
	if !ok {
		return nil
	}
	_, err = tx.Transact(ctx, nil, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "select id, count(*) from made group by id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			var n int
			if err := rows.Scan(&id, &n); err != nil {
				return err
			}
			r.rows[id] = n
		}
		return rows.Err()
	})
	return err
}

// linearizable reports whether the calls of a user may have taken effect one after
// another, each while it was under way, in the order of the list: a reply says where
// the message is in it, and a message that was answered before another one was sent is
// in front of that.
func (r *result) linearizable(user string, list []string) bool {
	place := map[string]int{}
	for i, id := range list {
		place[id] = i + 1
	}
	var done []line
	for _, l := range r.lines {
		if strings.HasPrefix(l.ID, user+"-") && !l.Answered.IsZero() && l.Reason == "" {
			if strconv.Itoa(place[l.ID]) != l.Reply {
				return false
			}
			done = append(done, l)
		}
	}
	for _, a := range done {
		for _, b := range done {
			if a.Answered.Before(b.Sent) && place[a.ID] > place[b.ID] {
				return false
			}
		}
	}
	return true
}

// waits returns how long the messages that were sent before the first answer after a
// time, and answered later, have waited since.
func (r *result) waits(since time.Time) []time.Duration {
	var first time.Time
	for _, l := range r.lines {
		// What was done at that time may be answered a moment later.
		if l.Answered.After(since.Add(300*time.Millisecond)) && (first.IsZero() || l.Answered.Before(first)) {
			first = l.Answered
		}
	}
	var waits []time.Duration
	for _, l := range r.lines {
		if l.Answered.After(since) && l.Sent.Before(first) {
			begin := l.Sent
			if begin.Before(since) {
				begin = since
			}
			waits = append(waits, l.Answered.Sub(begin))
		}
	}
	slices.Sort(waits)
	return waits
}

// row returns the run as rows of a table.
func (r *result) row(s settings, c *cluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s | %s | %d | %d (%d done) | %d | %d | %d | %d | %d |", s.topology, s.fault, r.durability, r.accepted, r.lost, r.lostDone,
		r.twice, r.stuck, r.dead, len(r.rolledBack), len(r.strange))
	for i, e := range c.events {
		if i > 0 {
			b.WriteString(";")
		}
		back := "–"
		if e.back > 0 {
			back = seconds(e.back)
		}
		fmt.Fprintf(&b, " %s: engine %s", e.name, back)
		if w := r.waits(e.at); len(w) > 0 {
			fmt.Fprintf(&b, ", %d waited p50 %s, p99 %s, longest %s", len(w), seconds(w[len(w)/2]), seconds(w[len(w)*99/100]), seconds(w[len(w)-1]))
		}
	}
	return b.String() + " |\n"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// details prints what was refused and logged, the most frequent first.
func (r *result) details(w io.Writer) {
	refused := map[string]int{}
	for _, l := range r.lines {
		for _, text := range l.Refused {
			refused[short(text)]++
		}
		if l.Reason != "" {
			refused["dead letter: "+short(l.Reason)]++
		}
	}
	for title, texts := range map[string]map[string]int{"refused": refused, "logged": r.logs} {
		fmt.Fprintln(w, title)
		keys := slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Compare(texts[b], texts[a]) })
		for _, key := range keys[:min(len(keys), 30)] {
			fmt.Fprintf(w, "%6d  %s\n", texts[key], key)
		}
	}
}

// verdict returns an error that says which promise is broken.
func (r *result) verdict(t *topology) error {
	var broken []string
	for _, n := range []struct {
		name string
		n    int
		is   bool
	}{
		{"lost", r.lost, t.keeps}, {"not linearizable", len(r.strange), t.keeps}, {"rolled back", len(r.rolledBack), t.keeps},
		{"twice", r.twice, true}, {"stuck", r.stuck, true}, {"dead letters", r.dead, true}, {"none accepted", 1, r.accepted == 0},
	} {
		if n.is && n.n > 0 {
			broken = append(broken, fmt.Sprintf("%s: %d", n.name, n.n))
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%s: %s", t.name, strings.Join(broken, ", "))
	}
	return nil
}

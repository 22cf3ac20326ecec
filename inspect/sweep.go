package inspect

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

const (
	// sweepRate is the number of heads that a sweep reads in a second.
	sweepRate = 5000
	// sweepBurst is the number of heads between two pauses.
	sweepBurst = 100
	// maxFindings is the number of workspaces that a sweep lists of each kind.
	maxFindings = 200
)

// sweepData is the data of the page about the last sweep.
type sweepData struct {
	Running bool      `json:"running"`
	Began   time.Time `json:"began,omitzero"` // zero if there was no sweep
	Ended   time.Time `json:"ended,omitzero"`
	Stopped bool      `json:"stopped,omitempty"` // before its end
	Problem string    `json:"problem,omitempty"`
	// Read is the number of workspaces that were looked at. At is the user of
	// the last one.
	Read int    `json:"read"`
	At   string `json:"at,omitempty"`
	// Findings are what was found, by kind of status, in the order of kinds.
	Findings []finding `json:"findings"`
	// Longest is the workspace with the run that has begun first, if any.
	Longest *workspaceRow `json:"longest,omitempty"`
}

// finding is the workspaces of one kind of status.
type finding struct {
	Kind  string         `json:"kind"`
	Count int            `json:"count"`
	Rows  []workspaceRow `json:"workspaces"` // the first of them
}

// Attention returns the number of findings.
func (d sweepData) Attention() int {
	n := 0
	for _, f := range d.Findings {
		n += f.Count
	}
	return n
}

// sweeper reads the heads of all workspaces on request. There is one sweep at a
// time.
type sweeper struct {
	mu   sync.Mutex
	data sweepData
	stop context.CancelFunc
}

func newSweepData(now time.Time) sweepData {
	data := sweepData{Running: true, Began: now}
	for _, kind := range statusKinds {
		if kind != "idle" {
			data.Findings = append(data.Findings, finding{Kind: kind})
		}
	}
	return data
}

// startSweep begins a sweep, unless there is one.
func (h *Handler) startSweep() {
	s := &h.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data.Running || !h.beginWork() {
		return
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(h.ctx)
	s.data = newSweepData(time.Now())
	go func() {
		defer h.work.Done()
		s.finish(ctx, s.run(ctx, h.manager))
	}()
}

// run reads all heads, no faster than sweepRate.
func (s *sweeper) run(ctx context.Context, m *workspace.Manager) error {
	began, read := time.Now(), 0
	for summary, err := range m.Summaries(ctx, "") {
		if err != nil {
			return err
		}
		s.add(summary)
		if read++; read%sweepBurst != 0 {
			continue
		}
		pause := time.NewTimer(time.Until(began.Add(time.Duration(read) * time.Second / sweepRate)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// add notes what a head says.
func (s *sweeper) add(summary workspace.Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Read++
	s.data.At = safetext.Visible(summary.UserID, false)
	row := newWorkspaceRow(summary)
	for _, st := range row.Status {
		for i := range s.data.Findings {
			f := &s.data.Findings[i]
			if f.Kind != st.Kind {
				continue
			}
			f.Count++
			if len(f.Rows) < maxFindings {
				f.Rows = append(f.Rows, row)
			}
		}
		if !st.Since.IsZero() && (s.data.Longest == nil || st.Since.Before(s.data.Longest.since())) {
			s.data.Longest = &row
		}
	}
}

// since returns when the run of the workspace has begun.
func (r workspaceRow) since() (began time.Time) {
	for _, st := range r.Status {
		if !st.Since.IsZero() {
			began = st.Since
		}
	}
	return began
}

func (s *sweeper) finish(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Running, s.data.Ended = false, time.Now()
	s.data.Stopped = ctx.Err() != nil
	if err != nil && !s.data.Stopped {
		_, s.data.Problem = explain(err)
	}
	s.stop()
}

// last returns what the last sweep has found so far.
func (s *sweeper) last() sweepData {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.data
	data.Findings = append([]finding{}, s.data.Findings...) // whose rows only grow
	return data
}

// sweep shows the last sweep. A sweep is about all workspaces, so it is not for
// requests that may see only some.
func (h *Handler) sweep(c *call) (*page, error) {
	if c.access.User != nil {
		return nil, errNoPage
	}
	data := h.sweeper.last()
	p := &page{Name: "sweep", Title: "Sweep", Tab: "sweep", Data: data}
	if data.Running {
		p.Reload = 2
	}
	return p, nil
}

// controlSweep starts or stops a sweep.
func (h *Handler) controlSweep(c *call) (*page, error) {
	if c.access.User != nil {
		return nil, errNoPage
	}
	switch c.r.PostFormValue("do") {
	case "start":
		h.startSweep()
	case "stop":
		h.sweeper.mu.Lock()
		if h.sweeper.stop != nil {
			h.sweeper.stop()
		}
		h.sweeper.mu.Unlock()
	default:
		return nil, &httpError{http.StatusBadRequest, "The form says neither start nor stop."}
	}
	c.redirect(c.link("/sweep"))
	return nil, nil
}

package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
)

// heldRow is a run that the Manager of the handler holds.
type heldRow struct {
	User    string    `json:"-"`
	ID      string    `json:"user"`
	Began   time.Time `json:"began"`
	Attempt int       `json:"attempt"`
}

// heldPulse is what the stream of the list says: that other runs are held. Seq is
// a name for the runs that the page shows.
type heldPulse struct {
	Seq  string `json:"seq"`
	Held int    `json:"held"`
}

func (p heldPulse) id() string { return p.Seq }

// held returns the runs of this process that the request may see. It does not
// read the store.
func (c *call) held() (rows []heldRow, pulse heldPulse) {
	rows = []heldRow{}
	var name strings.Builder
	for _, r := range c.h.manager.Held() {
		if c.access.sees(r.UserID) {
			rows = append(rows, heldRow{safetext.Visible(r.UserID, false), r.UserID, r.Began, r.Attempt + 1})
			fmt.Fprintf(&name, "%q %q %d\n", r.UserID, r.ID, r.Attempt)
		}
	}
	return rows, heldPulse{c.h.tag(name.String()), len(rows)}
}

// heldEvents answers with a stream of server-sent events: one for each change of
// the runs that this process holds.
func (h *Handler) heldEvents(c *call) (*page, error) {
	leave, err := h.feeds.enter(h)
	if err != nil {
		c.w.Header().Set("Retry-After", "30")
		return nil, err
	}
	defer leave()
	ctx, stop := context.WithCancel(c.ctx())
	pulses := make(chan heldPulse)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watchHeld(ctx, pulses)
	}()
	answerStream(c, pulses)
	stop()
	<-watched
	return nil, nil
}

// watchHeld sends a pulse at first and when the runs have changed, until ctx ends.
func (c *call) watchHeld(ctx context.Context, pulses chan<- heldPulse) {
	ticker := time.NewTicker(c.h.interval)
	defer ticker.Stop()
	last := ""
	for {
		if _, p := c.held(); p.Seq != last {
			select {
			case pulses <- p:
				last = p.Seq
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/work"
)

// Outcome is what is known of a message whose handling has ended.
type Outcome struct {
	ID      string      `json:"id"`
	Ending  work.Ending `json:"as"`
	RunID   string      `json:"run_id,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Reply   string      `json:"reply,omitempty"`
	Stop    state.Stop  `json:"stop,omitempty"`
	Version uint64      `json:"version"` // of the record that says so
	// At is the time of that record, or of the operation that has dropped the
	// message.
	At time.Time `json:"at,omitzero"`
}

// maxEnded is the number of endings in a head. It is a variable so that tests
// reach it with few messages.
var maxEnded = 16

const (
	maxOutcomes = 64 // the endings and outcomes that a head knows besides those in Ended
	// maxReplyBytes bounds the replies in a blob together.
	maxReplyBytes = 64 << 10
	// MaxReason is the maximum length of a reason.
	MaxReason = 256
)

// endedMessage is an ending in a head. The record with the version has the rest
// of the outcome.
type endedMessage struct {
	idHash  string
	version uint64
}

// ended returns the endings in the head, the newest last.
func (h *Head) ended() []endedMessage { return parseEndings(h.Ended) }

// parseEndings returns the endings in texts, one after the other.
func parseEndings(packed ...string) []endedMessage {
	n := len(packed)
	for _, text := range packed {
		n += strings.Count(text, listSeparator)
	}
	list := make([]endedMessage, 0, n)
	for _, text := range packed {
		for entry := range strings.SplitSeq(text, listSeparator) {
			if len(entry) > idHashLen {
				version, _ := strconv.ParseUint(entry[idHashLen:], 36, 64)
				list = append(list, endedMessage{entry[:idHashLen], version})
			}
		}
	}
	return list
}

// endings returns the endings of which the records have the rest: those in the
// blob, and those in the head. The newest is the last.
func (c *contentReader) endings(ctx context.Context, h *Head) ([]endedMessage, error) {
	if h.Endings == "" {
		return h.ended(), nil
	}
	packed, err := c.fetchBlob(ctx, h.Endings)
	if err != nil {
		return nil, err
	}
	return parseEndings(string(packed), h.Ended), nil
}

// noteEnded notes that the newest record has the outcome of a message.
func (t *transition) noteEnded(id string) error {
	if t.Ended != "" && strings.Count(t.Ended, listSeparator)+1 >= maxEnded {
		if err := t.moveEnded(); err != nil {
			return err
		}
	}
	entry := idHash(id) + strconv.FormatUint(t.Version, 36)
	if t.Ended != "" {
		entry = t.Ended + listSeparator + entry
	}
	t.Ended = entry
	return nil
}

// moveEnded moves the endings in the head to the blob, which keeps the newest.
func (t *transition) moveEnded() error {
	texts := strings.Split(t.Ended, listSeparator)
	if t.Endings != "" {
		packed, err := t.reader.fetchBlob(t.ctx, t.Endings)
		if err != nil {
			return err
		}
		texts = append(strings.Split(string(packed), listSeparator), texts...)
		t.dropBlob(t.Endings)
	}
	texts = texts[max(0, len(texts)-maxOutcomes):]
	if len(texts) == maxOutcomes && t.Outcomes != "" { // the head knows enough without them
		t.dropBlob(t.Outcomes)
		t.Outcomes = ""
	}
	t.Ended, t.Endings = "", t.addBlob([]byte(strings.Join(texts, listSeparator)))
	return nil
}

// moveOutcomes replaces all endings by their outcomes, before their records may
// go.
func (t *transition) moveOutcomes() error {
	if t.Ended == "" && t.Endings == "" {
		return nil
	}
	list, err := t.reader.Outcomes(t.ctx, t.Head)
	if err != nil {
		return err
	}
	return t.setOutcomes(list)
}

// dropOutcomes drops the blobs of endings and outcomes.
func (t *transition) dropOutcomes() {
	for _, name := range []string{t.Endings, t.Outcomes} {
		if name != "" {
			t.dropBlob(name)
		}
	}
}

// keepOutcome adds an outcome that no record has.
func (t *transition) keepOutcome(o Outcome) error {
	list, err := t.reader.Outcomes(t.ctx, t.Head)
	if err != nil {
		return err
	}
	return t.setOutcomes(append(list, o))
}

// Outcomes returns the outcomes that a head knows, the newest last. The caller
// may change the list.
func (c *contentReader) Outcomes(ctx context.Context, h *Head) ([]Outcome, error) {
	list, err := c.outcomes(ctx, h)
	if err != nil {
		return nil, err
	}
	endings, err := c.endings(ctx, h)
	if err != nil || len(endings) == 0 {
		return slices.Clone(list), err
	}
	inBlob := len(endings) - len(h.ended())
	list = slices.Clone(list[max(0, len(list)+inBlob-maxOutcomes):])
	// Their records are near each other, and are read together.
	first, last := endings[0].version, endings[len(endings)-1].version
	for s, err := range c.storedRecords(ctx, h, first-1, last) {
		if err != nil {
			return nil, err
		}
		if s.version != endings[0].version {
			continue
		}
		o, err := s.outcome(c.key)
		if err != nil {
			return nil, err
		}
		if list, endings = append(list, o), endings[1:]; len(endings) == 0 {
			return list, nil
		}
	}
	return nil, c.errBrokenChain()
}

// setOutcomes replaces the endings and outcomes by outcomes, of which it keeps
// the newest. It may change list.
func (t *transition) setOutcomes(list []Outcome) error {
	list = list[max(0, len(list)-maxOutcomes):]
	left := maxReplyBytes
	for i, o := range slices.Backward(list) {
		if len(o.Reply) > left {
			list[i].Reply = ""
		} else {
			left -= len(o.Reply)
		}
	}
	data, err := jsontext.Marshal(list)
	if err != nil {
		return err
	}
	t.dropOutcomes()
	t.Ended, t.Endings, t.Outcomes = "", "", t.addBlob(data)
	t.reader.contents.noteOutcomes(t.Outcomes, list)
	return nil
}

// outcomes returns the outcomes in the blob, the newest last. The caller must
// not change the list.
func (c *contentReader) outcomes(ctx context.Context, h *Head) ([]Outcome, error) {
	if h.Outcomes == "" {
		return nil, nil
	}
	if list, ok := c.contents.outcomesOf(h.Outcomes); ok {
		return list, nil
	}
	list, err := fetchBlobJSON[[]Outcome](ctx, &c.blobStore, h.Outcomes)
	if err == nil {
		c.contents.noteOutcomes(h.Outcomes, list)
	}
	return list, err
}

// outcomeAt returns the outcome that a record has.
func (c *contentReader) outcomeAt(ctx context.Context, h *Head, version uint64) (Outcome, error) {
	s, err := c.recordAt(ctx, h, version)
	if err != nil {
		return Outcome{}, err
	}
	return s.outcome(c.key)
}

// outcome returns the outcome in a record.
func (s *storedRecord) outcome(key string) (Outcome, error) {
	o, err := s.readOutcome()
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %s: record %d: %w", work.ErrCorrupt, key, s.version, err)
	}
	return o, nil
}

// readOutcome reads the members of an outcome. They are all texts, and the rest
// of the record, which is most of it, is skipped. The hash or the seal of its blob
// says that the text is as appendRecord has made it.
func (s *storedRecord) readOutcome() (o Outcome, err error) {
	o.Version = s.version
	return o, jsontext.EachMember(s.text, func(name []byte, at jsontext.Span) error {
		value := at.In(s.text)
		if jsontext.Kind(value) != "string" {
			return nil
		}
		switch string(name) {
		case "message_id":
			o.ID = jsontext.Unquote(value)
		case "ending":
			o.Ending = work.Ending(jsontext.Unquote(value))
		case "run_id":
			o.RunID = jsontext.Unquote(value)
		case "reason":
			o.Reason = jsontext.Unquote(value)
		case "reply":
			o.Reply = jsontext.Unquote(value)
		case "stop":
			o.Stop = state.Stop(jsontext.Unquote(value))
		case "time":
			return o.At.UnmarshalJSON(value)
		}
		return nil
	})
}

// outcomeOf returns the outcome that the last record of a run has.
func outcomeOf(r *work.Record) Outcome {
	return Outcome{r.Message, r.Ending, r.RunID, r.Reason, r.Reply, r.Stop, r.Version, r.Time}
}

// findOutcome returns the latest outcome of a message, or none.
func (c *contentReader) findOutcome(ctx context.Context, h *Head, id string) (Outcome, error) {
	endings, err := c.endings(ctx, h)
	if err != nil {
		return Outcome{}, err
	}
	want := idHash(id)
	for _, e := range slices.Backward(endings) {
		if e.idHash != want {
			continue
		}
		o, err := c.outcomeAt(ctx, h, e.version)
		if err != nil || o.ID == id {
			return o, err
		}
	}
	list, err := c.outcomes(ctx, h)
	for _, o := range slices.Backward(list) {
		if o.ID == id {
			return o, err
		}
	}
	return Outcome{}, err
}

// fencedError is the error of a holder whose run another caller has ended.
type fencedError struct {
	ending work.Ending
	cause  error
}

func (e *fencedError) Error() string { return work.ErrFenced.Error() + ": " + e.cause.Error() }

func (e *fencedError) Unwrap() []error { return []error{work.ErrFenced, e.cause} }

// FencedBy returns the error of a holder whose run has ended otherwise. It is
// ErrFenced, together with ErrInterrupted if another caller has ended the run.
func FencedBy(ending work.Ending) error {
	switch ending {
	case work.EndingCancelled:
		return &fencedError{ending, work.ErrRunCancelled}
	case work.EndingInterrupted, work.EndingRolledBack, work.EndingReset:
		return &fencedError{ending, work.ErrInterrupted}
	}
	return work.ErrFenced
}

// EndingOf returns the ending of which err tells a holder, or "".
func EndingOf(err error) work.Ending {
	var e *fencedError
	if errors.As(err, &e) {
		return e.ending
	}
	return ""
}

package workspace

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state/internal/jsontext"
)

// format is that of the heads, records and blobs that this package writes.
const format = 1

// How many entries the rings of a head have.
const (
	maxFinished    = 64
	maxDeadLetters = 16
)

// opsRing is how many operations a head remembers.
var maxOps = 32

// head is what there is to know about a workspace, but for what it refers to in
// blobs. It is one value of the store, and is only replaced as a whole, by who has
// read it.
type head struct {
	Format      int               `json:"format"`
	Nonce       string            `json:"nonce"` // new with every write
	Epoch       uint64            `json:"epoch"` // resets
	Seq         uint64            `json:"seq"`   // writes
	Token       uint64            `json:"token"` // runs that began or changed hands
	Version     uint64            `json:"version"`
	Chain       string            `json:"chain"` // the hash of all records up to Version
	Run         *activeRun        `json:"run,omitempty"`
	Queue       []pendingMessage  `json:"queue,omitempty"`
	Finished    []finishedMessage `json:"done,omitempty"`
	DeadLetters []deadLetter      `json:"dead,omitempty"`
	Ops         []appliedOp       `json:"ops,omitempty"`
	Snapshot    *snapshot         `json:"snap,omitempty"`
	Segments    []blobRef         `json:"segs,omitempty"`
	Tail        []storedRecord    `json:"tail,omitempty"`
	// Purge is the version that replaced or deleted a secret: what is older is to
	// be compacted away.
	Purge uint64 `json:"purge,omitempty"`

	unknownMembers unknownMembers // of whoever writes newer heads of this format
}

// lease is the run that is under way, and whose it is.
type activeRun struct {
	LeaseID  string         `json:"id"`   // of this holder of the run; another who takes it over has another
	RunID    string         `json:"work"` // of the run, whoever holds it
	Token    uint64         `json:"token"`
	TTL      int64          `json:"ttl"`  // milliseconds
	Renewals uint64         `json:"beat"` // signs of life
	Attempt  int            `json:"attempt"`
	Message  pendingMessage `json:"msg"`
	Base     position       `json:"base"` // where the run began
	Begun    time.Time      `json:"began"`

	unknownMembers unknownMembers
}

func (l *activeRun) duration() time.Duration { return time.Duration(l.TTL) * time.Millisecond }

// point is a version and the chain up to it.
type position struct {
	Version uint64 `json:"version"`
	Chain   string `json:"chain"`
}

// item is a message that waits or is being handled. Its body is a blob if it is
// large.
type pendingMessage struct {
	ID       string          `json:"id"`
	At       time.Time       `json:"at"`
	Body     json.RawMessage `json:"message,omitempty"`
	BodyBlob *blobRef        `json:"body,omitempty"`

	unknownMembers unknownMembers
}

// How a message has ended.
const (
	finishedHandled     = "handled"
	finishedFailed      = "failed"
	finishedInterrupted = "interrupted"
	finishedRolledBack  = "rolled_back"
	finishedReset       = "reset"
)

// done is a message that was handled, one way or another.
type finishedMessage struct {
	ID      string `json:"id"`
	Outcome string `json:"as"`

	unknownMembers unknownMembers
}

// dead is a message that was tried too often.
type deadLetter struct {
	Message pendingMessage `json:"msg"`
	Attempt int            `json:"attempt"`

	unknownMembers unknownMembers
}

// did is an operation that has taken effect.
type appliedOp struct {
	ID  string `json:"op"`
	Seq uint64 `json:"seq"`
}

// ref refers to a blob: the records from one version to another, a list of such
// refs if its level is not 0, or something else, without versions.
type blobRef struct {
	Name  string `json:"name"`
	Hash  string `json:"sha256"`
	Bytes int    `json:"bytes"` // of all records below it
	Level int    `json:"level,omitempty"`
	From  uint64 `json:"from,omitempty"`
	To    uint64 `json:"to,omitempty"`

	unknownMembers unknownMembers
}

// snap is the whole content at a version, cut into parts.
type snapshot struct {
	position
	Parts []blobRef `json:"parts,omitempty"`

	unknownMembers unknownMembers
}

func (s *snapshot) bytes() int {
	n := 0
	for _, p := range s.Parts {
		n += p.Bytes
	}
	return n
}

// start returns where the records of the head begin.
func (h *head) snapshotPosition() position {
	if h.Snapshot == nil {
		return position{}
	}
	return h.Snapshot.position
}

func (h *head) position() position { return position{h.Version, h.Chain} }

// settled returns the point up to which nothing can be taken back any more.
func (h *head) settledPosition() position {
	if h.Run != nil {
		return h.Run.Base
	}
	return h.position()
}

// fate says what has become of a message: "" if the head does not know it.
func (h *head) messageState(id string) string {
	if h.Run != nil && h.Run.Message.ID == id {
		return "running"
	}
	for _, q := range h.Queue {
		if q.ID == id {
			return "queued"
		}
	}
	for _, d := range h.Finished {
		if d.ID == id {
			return d.Outcome
		}
	}
	for _, d := range h.DeadLetters {
		if d.Message.ID == id {
			return "dead"
		}
	}
	return ""
}

func (h *head) markFinished(id, as string) {
	h.Finished = append(h.Finished, finishedMessage{ID: id, Outcome: as})
	h.Finished = h.Finished[max(0, len(h.Finished)-maxFinished):]
}

// knows reports whether an operation has taken effect.
func (h *head) hasOp(op string) bool {
	return slices.ContainsFunc(h.Ops, func(d appliedOp) bool { return d.ID == op })
}

// recalls reports whether the head knows every operation from a seq on.
func (h *head) hasOpsSince(seq uint64) bool {
	return len(h.Ops) > 0 && h.Ops[0].Seq <= seq
}

// refs returns the refs to all blobs that the head itself names.
func (h *head) blobRefs() []blobRef {
	var refs []blobRef
	if h.Snapshot != nil {
		refs = append(refs, h.Snapshot.Parts...)
	}
	refs = append(refs, h.Segments...)
	body := func(i pendingMessage) {
		if i.BodyBlob != nil {
			refs = append(refs, *i.BodyBlob)
		}
	}
	if h.Run != nil {
		body(h.Run.Message)
	}
	for _, i := range h.Queue {
		body(i)
	}
	for _, d := range h.DeadLetters {
		body(d.Message)
	}
	return refs
}

// clone returns a head that can be changed without changing h.
func (h *head) clone() *head {
	c := *h
	if h.Run != nil {
		run := *h.Run
		c.Run = &run
	}
	c.Queue, c.Finished, c.DeadLetters, c.Ops = slices.Clone(h.Queue), slices.Clone(h.Finished), slices.Clone(h.DeadLetters), slices.Clone(h.Ops)
	c.Segments, c.Tail = slices.Clone(h.Segments), slices.Clone(h.Tail)
	return &c
}

// encode returns the head as it is stored: its JSON with a checksum at the end, so
// that no damage passes for another head.
func (h *head) encode() ([]byte, error) {
	data, err := h.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return appendHash(data, "sum", hash(data)), nil
}

// decodeHead reads what encode wrote.
func decodeHead(key string, data []byte) (*head, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	body, sum, ok := cutHash(data, "sum")
	if !ok || sum != hash(body) {
		// A newer format may have its checksum elsewhere.
		var f struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(data, &f) == nil && f.Format > format {
			return nil, fmt.Errorf("%w: %s: format %d", ErrNewerFormat, key, f.Format)
		}
		return nil, corrupt(key, "the checksum does not fit")
	}
	h := &head{}
	if err := json.Unmarshal(body, h); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	switch {
	case h.Format > format:
		return nil, fmt.Errorf("%w: %s: format %d", ErrNewerFormat, key, h.Format)
	case h.Format != format:
		return nil, corrupt(key, "no format")
	}
	return h, nil
}

// withLast returns an object with one more member at its end, whose value is a
// hash.
func appendHash(object []byte, name, sum string) []byte {
	return fmt.Appendf(object[:len(object)-1:len(object)-1], `,"%s":"%s"}`, name, sum)
}

// cutLast takes the last member off again.
func cutHash(object []byte, name string) (rest []byte, sum string, ok bool) {
	i := len(object) - len(name) - len(`,"":""}`) - hashLen
	if i < 1 {
		return nil, "", false
	}
	last, ok := bytes.CutPrefix(object[i:], []byte(`,"`+name+`":"`))
	if !ok || !bytes.HasSuffix(last, []byte(`"}`)) {
		return nil, "", false
	}
	return append(object[:i:i], '}'), string(last[:hashLen]), true
}

const hashLen = 43

// hash returns SHA-256 in 43 characters.
func hash(parts ...[]byte) string {
	d := sha256.New()
	for _, p := range parts {
		d.Write(p)
	}
	return base64.RawURLEncoding.EncodeToString(d.Sum(nil))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// newID returns 128 random bits as text.
func newID() string { return base64.RawURLEncoding.EncodeToString(randomBytes(16)) }

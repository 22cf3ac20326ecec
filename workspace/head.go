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
	doneRing = 64
	deadRing = 16
)

// opsRing is how many operations a head remembers.
var opsRing = 32

// head is what there is to know about a workspace, but for what it refers to in
// blobs. It is one value of the store, and is only replaced as a whole, by who has
// read it.
type head struct {
	Format  int     `json:"format"`
	Nonce   string  `json:"nonce"` // new with every write
	Epoch   uint64  `json:"epoch"` // resets
	Seq     uint64  `json:"seq"`   // writes
	Token   uint64  `json:"token"` // runs that began or changed hands
	Version uint64  `json:"version"`
	Chain   string  `json:"chain"` // the hash of all records up to Version
	Run     *lease  `json:"run,omitempty"`
	Queue   []item  `json:"queue,omitempty"`
	Done    []done  `json:"done,omitempty"`
	Dead    []dead  `json:"dead,omitempty"`
	Ops     []did   `json:"ops,omitempty"`
	Snap    *snap   `json:"snap,omitempty"`
	Segs    []ref   `json:"segs,omitempty"`
	Tail    []entry `json:"tail,omitempty"`
	// Purge is the version that replaced or deleted a secret: what is older is to
	// be compacted away.
	Purge uint64 `json:"purge,omitempty"`

	rest members // of whoever writes newer heads of this format
}

// lease is the run that is under way, and whose it is.
type lease struct {
	ID      string    `json:"id"`   // of this holder of the run; another who takes it over has another
	Work    string    `json:"work"` // of the run, whoever holds it
	Token   uint64    `json:"token"`
	TTL     int64     `json:"ttl"`  // milliseconds
	Beat    uint64    `json:"beat"` // signs of life
	Attempt int       `json:"attempt"`
	Item    item      `json:"msg"`
	Base    point     `json:"base"` // where the run began
	Began   time.Time `json:"began"`

	rest members
}

func (l *lease) ttl() time.Duration { return time.Duration(l.TTL) * time.Millisecond }

// point is a version and the chain up to it.
type point struct {
	Version uint64 `json:"version"`
	Chain   string `json:"chain"`
}

// item is a message that waits or is being handled. Its body is a blob if it is
// large.
type item struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"at"`
	Message json.RawMessage `json:"message,omitempty"`
	Body    *ref            `json:"body,omitempty"`

	rest members
}

// How a message has ended.
const (
	handled     = "handled"
	failed      = "failed"
	interrupted = "interrupted"
	rolledBack  = "rolled_back"
	reset       = "reset"
)

// done is a message that was handled, one way or another.
type done struct {
	ID string `json:"id"`
	As string `json:"as"`

	rest members
}

// dead is a message that was tried too often.
type dead struct {
	Item    item `json:"msg"`
	Attempt int  `json:"attempt"`

	rest members
}

// did is an operation that has taken effect.
type did struct {
	Op  string `json:"op"`
	Seq uint64 `json:"seq"`
}

// ref refers to a blob: the records from one version to another, a list of such
// refs if its level is not 0, or something else, without versions.
type ref struct {
	Name  string `json:"name"`
	Hash  string `json:"sha256"`
	Bytes int    `json:"bytes"` // of all records below it
	Level int    `json:"level,omitempty"`
	From  uint64 `json:"from,omitempty"`
	To    uint64 `json:"to,omitempty"`

	rest members
}

// snap is the whole content at a version, cut into parts.
type snap struct {
	point
	Parts []ref `json:"parts,omitempty"`

	rest members
}

func (s *snap) bytes() int {
	n := 0
	for _, p := range s.Parts {
		n += p.Bytes
	}
	return n
}

// start returns where the records of the head begin.
func (h *head) start() point {
	if h.Snap == nil {
		return point{}
	}
	return h.Snap.point
}

func (h *head) now() point { return point{h.Version, h.Chain} }

// settled returns the point up to which nothing can be taken back any more.
func (h *head) settled() point {
	if h.Run != nil {
		return h.Run.Base
	}
	return h.now()
}

// fate says what has become of a message: "" if the head does not know it.
func (h *head) fate(id string) string {
	if h.Run != nil && h.Run.Item.ID == id {
		return "running"
	}
	for _, q := range h.Queue {
		if q.ID == id {
			return "queued"
		}
	}
	for _, d := range h.Done {
		if d.ID == id {
			return d.As
		}
	}
	for _, d := range h.Dead {
		if d.Item.ID == id {
			return "dead"
		}
	}
	return ""
}

func (h *head) end(id, as string) {
	h.Done = append(h.Done, done{ID: id, As: as})
	h.Done = h.Done[max(0, len(h.Done)-doneRing):]
}

// knows reports whether an operation has taken effect.
func (h *head) knows(op string) bool {
	return slices.ContainsFunc(h.Ops, func(d did) bool { return d.Op == op })
}

// recalls reports whether the head knows every operation from a seq on.
func (h *head) recalls(seq uint64) bool {
	return len(h.Ops) > 0 && h.Ops[0].Seq <= seq
}

// refs returns the refs to all blobs that the head itself names.
func (h *head) refs() []ref {
	var refs []ref
	if h.Snap != nil {
		refs = append(refs, h.Snap.Parts...)
	}
	refs = append(refs, h.Segs...)
	body := func(i item) {
		if i.Body != nil {
			refs = append(refs, *i.Body)
		}
	}
	if h.Run != nil {
		body(h.Run.Item)
	}
	for _, i := range h.Queue {
		body(i)
	}
	for _, d := range h.Dead {
		body(d.Item)
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
	c.Queue, c.Done, c.Dead, c.Ops = slices.Clone(h.Queue), slices.Clone(h.Done), slices.Clone(h.Dead), slices.Clone(h.Ops)
	c.Segs, c.Tail = slices.Clone(h.Segs), slices.Clone(h.Tail)
	return &c
}

// encode returns the head as it is stored: its JSON with a checksum at the end, so
// that no damage passes for another head.
func (h *head) encode() ([]byte, error) {
	data, err := h.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return withLast(data, "sum", hash(data)), nil
}

// decodeHead reads what encode wrote.
func decodeHead(key string, data []byte) (*head, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	body, sum, ok := cutLast(data, "sum")
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
func withLast(object []byte, name, sum string) []byte {
	return fmt.Appendf(object[:len(object)-1:len(object)-1], `,"%s":"%s"}`, name, sum)
}

// cutLast takes the last member off again.
func cutLast(object []byte, name string) (rest []byte, sum string, ok bool) {
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

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// newID returns 128 random bits as text.
func newID() string { return base64.RawURLEncoding.EncodeToString(random(16)) }

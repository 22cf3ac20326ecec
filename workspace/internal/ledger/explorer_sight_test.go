package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentstate/state/workspace/internal/document"
)

// sight is a head that is decoded without the code under test.
type sight struct {
	Chain                      string
	Epoch, Seq, Token, Version uint64
	Run                        *struct {
		LeaseID  string `json:"lease_id"`
		Holder   string
		RunID    string `json:"run_id"`
		Token    uint64
		Renewals uint64
		Attempt  int
		Message  sightMessage
		Base     *Position
		Joined   []struct {
			Message sightMessage
			Answers int
		}
	}
	Queue       sightList
	Ended       string
	Endings     string
	Outcomes    string
	DeadLetters struct {
		Count int
		Blob  string
	} `json:"dead_letters"`
	Ops      string
	Snapshot *struct {
		Version uint64
		Chain   string
		Parts   sightList
	}
	Records sightList
	Past    *struct {
		Oldest uint64
		Bytes  int
		Blob   string
	}
	Suspended int
	Expires   int64 `json:"expires_ms"`
	Purge     uint64
	Deleted   string
	Name      string
	Notes     string
}

// sightSegment is a segment of the past.
type sightSegment struct {
	Snapshot struct {
		Position
		Parts sightList
		Bytes int
	}
	Records     sightList
	RecordBytes int `json:"record_bytes"`
}

type sightMessage struct {
	ID     string
	Blob   string
	Ticket bool
	Stands bool
}

type sightList struct {
	First, Next uint64
	Levels      []string
}

// note is what was noted about a message.
type note struct {
	Message int
	Text    string
}

// ending is the outcome of a message.
type ending struct{ ID, As string }

func (g *ghost) decode(value []byte) *sight {
	data, err := g.x.sealer.open(headOf, headOf, value)
	if err != nil {
		g.x.violated("the head cannot be opened: %v", err)
	}
	s := &sight{}
	if err := json.Unmarshal(data, s); err != nil {
		g.x.violated("the head cannot be read: %v", err)
	}
	if r := s.Run; r != nil { // without what the head says too
		r.Token = cmp.Or(r.Token, s.Token)
		if r.Base == nil {
			r.Base = &Position{s.Version, s.Chain}
		}
	}
	return s
}

func (s *sight) now() Position { return Position{s.Version, s.Chain} }

// oldest returns the oldest version that the head has.
func (s *sight) oldest() uint64 {
	if s.Past != nil {
		return s.Past.Oldest
	}
	return s.start().Version
}

// start returns the position of the snapshot.
func (s *sight) start() Position {
	if s.Snapshot == nil {
		return Position{}
	}
	return Position{s.Snapshot.Version, s.Snapshot.Chain}
}

// nonce returns the operation of the write that made the head.
func (s *sight) nonce() string { return s.Ops[max(0, len(s.Ops)-nonceLen):] }

// head returns the part of the head that is needed to read the content.
func (s *sight) head() *Head {
	h := &Head{Seq: s.Seq, Version: s.Version, Chain: s.Chain, Records: blobList(s.Records)}
	if s.Past != nil {
		h.Past = past{s.Past.Oldest, s.Past.Bytes, s.Past.Blob}
	}
	if s.Snapshot != nil {
		h.Snapshot = &snapshot{Position: s.start(), Parts: blobList(s.Snapshot.Parts)}
	}
	return h
}

// blob returns the content of a blob, which must exist, and notes that the head
// refers to it.
func (g *ghost) blob(name string) string {
	g.live[name] = true
	e, found := g.x.store.entries[blobsOf+name]
	if !found {
		g.x.violated("I2: the head refers to a blob that is not there: %s", short(blobsOf+name))
	}
	if text, known := g.texted[name]; known {
		return text
	}
	data, err := g.x.sealer.open(headOf, blobsOf+name, e.value)
	if err != nil {
		g.x.violated("%s: %v", name, err)
	}
	g.texted[name] = string(data)
	return string(data)
}

// entries returns the entries of a list, the oldest first.
func (g *ghost) entries(l sightList) []string {
	var entries []string // the newest first
	want := int(l.Next - l.First)
	var collect func(names string, level int)
	collect = func(names string, level int) {
		list := strings.Split(names, ",")
		for _, name := range slices.Backward(list) {
			switch {
			case names == "" || len(entries) == want:
				return
			case level == 0:
				entries = append(entries, name)
			default:
				collect(g.blob(name), level-1)
			}
		}
	}
	for level, names := range l.Levels {
		collect(names, level)
	}
	if len(entries) != want {
		g.x.violated("a list has %d entries, not those from %d to %d", len(entries), l.First, l.Next)
	}
	slices.Reverse(entries)
	return entries
}

// queue returns the ids of the messages that wait, with a mark of those that want to
// join.
func (g *ghost) queue(h *sight) []string {
	ids := make([]string, 0, 8)
	for _, entry := range g.entries(h.Queue) {
		name, rest, _ := strings.Cut(entry, ":")
		m := g.message(name)
		if _, joins := strings.CutSuffix(rest, ":join"); joins {
			m.ID += "+"
		}
		if m.Stands {
			m.ID += "!"
		}
		ids = append(ids, m.ID)
	}
	return ids
}

func (g *ghost) message(name string) (m sightMessage) {
	if err := json.Unmarshal([]byte(g.blob(name)), &m); err != nil {
		g.x.violated("the message in %s: %v", name, err)
	}
	return m
}

// dead returns the ids of the dead letters.
func (g *ghost) dead(h *sight) []string {
	ids := make([]string, 0, 8)
	if h.DeadLetters.Count == 0 {
		return ids
	}
	var list []struct{ Message sightMessage }
	if err := json.Unmarshal([]byte(g.blob(h.DeadLetters.Blob)), &list); err != nil {
		g.x.violated("the dead letters: %v", err)
	}
	for _, d := range list {
		if d.Message.Blob != "" {
			g.message(d.Message.Blob)
		}
		ids = append(ids, d.Message.ID)
	}
	if len(list) != h.DeadLetters.Count {
		g.x.violated("the head has %d dead letters, not %d", len(list), h.DeadLetters.Count)
	}
	return ids
}

// notes returns the notes.
func (g *ghost) notes(h *sight) (list []note) {
	if h.Notes == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(g.blob(h.Notes)), &list); err != nil {
		g.x.violated("the notes: %v", err)
	}
	return list
}

// done returns the endings that the head knows, the newest last.
func (g *ghost) done(h *sight, records map[uint64]string) []ending {
	list := []ending{}
	if h.Outcomes != "" {
		if err := json.Unmarshal([]byte(g.blob(h.Outcomes)), &list); err != nil {
			g.x.violated("the outcomes: %v", err)
		}
	}
	endings := (&Head{Ended: h.Ended}).ended()
	if h.Endings != "" {
		endings = append(parseEndings(g.blob(h.Endings)), endings...)
	}
	for _, e := range endings {
		var r struct {
			Message string `json:"message_id"`
			Ending  string
		}
		if err := json.Unmarshal([]byte(records[e.version]), &r); err != nil || idHash(r.Message) != e.idHash {
			g.x.violated("the record %d does not have the ending: %v", e.version, err)
		}
		list = append(list, ending{r.Message, r.Ending})
	}
	return list
}

// records returns the texts of the records by version.
func (g *ghost) records(h *sight) map[uint64]string {
	texts := map[uint64]string{}
	for i, entry := range g.entries(h.Records) {
		texts[h.Records.First+uint64(i)+1] = g.record(entry)
	}
	return texts
}

// record returns the text of the record of an entry.
func (g *ghost) record(entry string) string {
	entry, _, _ = strings.Cut(entry, ":")
	name, long := strings.CutPrefix(entry, "*")
	text := g.blob(name)
	if long {
		parts := strings.Split(text, ",")
		text = ""
		for _, part := range parts {
			text += g.blob(part)
		}
	}
	return text
}

// lookBack notes the blobs of the past, and checks what the head says of it.
func (g *ghost) lookBack(h *sight) {
	if h.Past == nil {
		return
	}
	var segments []sightSegment
	if err := json.Unmarshal([]byte(g.blob(h.Past.Blob)), &segments); err != nil {
		g.x.violated("the past: %v", err)
	}
	version, bytes, records := h.Past.Oldest, 0, 0
	for _, s := range segments {
		if s.Snapshot.Version != version {
			g.x.violated("a segment of the past begins at %d, not %d", s.Snapshot.Version, version)
		}
		for _, part := range g.entries(s.Snapshot.Parts) {
			g.blob(part)
		}
		for _, part := range g.entries(s.Records) {
			for _, entry := range strings.Split(g.blob(part), ",") {
				version++
				records += len(g.record(entry))
			}
		}
		bytes += s.Snapshot.Bytes + s.RecordBytes
	}
	if version != h.start().Version || bytes != h.Past.Bytes {
		g.x.violated("the past ends at %d and has %d bytes, not %d and %d", version, bytes, h.start().Version, h.Past.Bytes)
	}
	if records > g.x.history && len(segments) > 1 {
		g.x.violated("the past has %d bytes of records in %d segments", records, len(segments))
	}
	g.x.count["pasts"]++
}

// checkPast checks that all versions that the head has show what was there.
func (g *ghost) checkPast(h *sight) {
	ctx, l, head := context.Background(), g.freshReader(), h.head()
	at, err := l.PositionAt(ctx, head, h.oldest())
	if err != nil || at.Version != h.oldest() {
		g.x.violated("the oldest version is %d, not %d: %v", at.Version, h.oldest(), err)
	}
	positions := []Position{at}
	for r, err := range l.RecordsBetween(ctx, head, at.Version, h.Version) {
		if err != nil {
			g.x.violated("the records from %d to %d: %v", h.oldest(), h.Version, err)
		}
		positions = append(positions, Position{r.Version, r.Chain})
	}
	for _, at := range positions {
		if got, err := l.PositionAt(ctx, head, at.Version); err != nil || got != at {
			g.x.violated("the position of version %d is %v, not %v: %v", at.Version, got, at, err)
		}
		want, known := g.texts[at.Chain]
		if !known {
			g.x.violated("a record of version %d that nobody has written", at.Version)
		}
		g.check(l, h, at, want)
	}
	if h.Past != nil && h.start().Version > h.Past.Oldest {
		v := verification{Ledger: l, head: head}
		if err := v.checkContent(ctx, func(*Head, *document.Document) error { return nil }); err != nil {
			g.x.violated("the past is not authentic: %v", err)
		}
	}
}

// refer notes the blobs to which a head refers, and checks that they exist.
func (g *ghost) refer(h *sight) {
	g.look(h)
}

// seen is what a head and its blobs say.
type shown struct {
	queue, dead []string
	done        []ending
	notes       []note
}

func (g *ghost) look(h *sight) shown {
	g.live = map[string]bool{}
	if h.Run != nil && h.Run.Message.Blob != "" {
		g.message(h.Run.Message.Blob)
	}
	if h.Run != nil {
		for _, j := range h.Run.Joined {
			g.message(j.Message.Blob)
		}
	}
	g.lookBack(h)
	if h.Snapshot != nil {
		for _, part := range g.entries(h.Snapshot.Parts) {
			g.blob(part)
		}
	}
	return shown{g.queue(h), g.dead(h), g.done(h, g.records(h)), g.notes(h)}
}

func (g *ghost) check(l *Ledger, h *sight, at Position, want text) {
	doc, err := l.Content(context.Background(), h.head(), at)
	if err != nil {
		g.x.violated("the content at version %d cannot be read: %v", at.Version, err)
	}
	if got := string(doc.Encode()); got != want.encode() {
		g.x.violated("the content at version %d is %s, not %s", at.Version, brief(got), brief(want.encode()))
	}
}

func brief(text string) string {
	return strings.ReplaceAll(text, strings.Repeat("x", 100), "")
}

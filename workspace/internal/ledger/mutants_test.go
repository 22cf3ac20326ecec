package ledger

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/mutation"
)

// mutant is a mistake in the sources that a test must find.
type mutant struct {
	name    string
	variant string     // of the store of the explorer (default: all)
	fault   string     // of that store
	finder  finder     // (default: the explorer)
	edits   []textEdit // of files in one package
}

// finder is a test that finds mutants: the tests with these names in a folder,
// built without the files that they do not need.
type finder struct{ folder, files, tests, flag string }

var (
	explorers = finder{".", "explorer_*_test.go", "TestExplorer", "-test.v"}
	documents = finder{inDocument, "*_test.go", "TestDocumentFollowsTheState|TestWindowKeepsGroups|TestUnusedMessagesThatAreAdded", "-rapid.shrinktime=1ms"}
	families  = finder{".", "explorer_*_test.go", "TestSharedExplorer", "-test.v"}
	programs  = finder{inWorkspace, "loaded_test.go export_test.go", "TestLiveIsLoaded", "-test.v"}
)

// textEdit replaces a text that a file has exactly once.
type textEdit mutation.Edit

// The folders of other packages.
const (
	inDocument  = "../document/"
	inWorkspace = "../../"
)

var mutants = []mutant{
	{name: "what is shown counts as written", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "case !l.opts.Confirm || h.Seq == 0 ||", "case h.Seq >= 0 ||"},
	}},
	{name: "a duplicate of what is shown is told", variant: "shows", edits: []textEdit{
		{"submission.go", "again, err = l.Confirm(ctx, h, fate)", "again, err = false, nil"},
	}},
	{name: "a write that is not acknowledged acknowledges those before", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrUnknownOutcome):", "	case errors.Is(err, store.ErrUnknownOutcome):\n	case errors.Is(err, store.ErrConflict):"},
	}},
	{name: "any head counts as acknowledged", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "s.kept.head.nonceAt(h.Seq) == h.nonce()", "s.kept.head.Seq > 0"},
	}},
	{name: "a duplicate is told from a head that was taken back", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "return err == nil && now.mark() != h.mark(), err", "return false, err"},
	}},
	{name: "what was only shown counts as seen", variant: "shows", edits: []textEdit{
		{"ledger.go", "l.opts.Confirm && l.seen.takeBack(h)", "false"},
	}},
	{name: "a head notes what is only shown as acknowledged", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "if t.ledger.seen.isKept(of) {", "if of.Seq > 0 {"},
	}},
	{name: "a head notes its own records as acknowledged", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "version, known = of.Version, true", "version, known = t.Version, true"},
	}},
	{name: "a run is confirmed by the record before it", variant: "shows", edits: []textEdit{
		{"acknowledge.go", "h.Run.Base.Version < version", "h.Run.Base.Version <= version"},
	}},
	{name: "a message joins that the holder has not read", edits: []textEdit{
		{"join.go", "		return ErrJoin", "		by.Join = nil"},
	}},
	{name: "a message joins from behind another", edits: []textEdit{
		{"join.go", "			break\n", "			continue\n"},
	}},
	{name: "a message that no model has read ends with the run", edits: []textEdit{
		{"join.go", "j.Answers >= t.Run.Answers", "j.Answers > t.Run.Answers"},
	}},
	{name: "a joined message of a run that has failed ends", edits: []textEdit{
		{"join.go", "r.Ending == work.EndingFailed ||", ""},
	}},
	{name: "a joined message that was undone is forgotten", edits: []textEdit{
		{"transition.go", "	return t.putBack(t.Run.Joined, false)", "	t.Run.Joined = nil\n	return nil"},
	}},
	{name: "a joined message goes back to the end of the queue", edits: []textEdit{
		{"join.go", "		entries = append(entries, entry)", "		entries = append([]string{entry}, entries...)"},
	}},
	{name: "a joined message joins another run while it stands", edits: []textEdit{
		{"join.go", "m.Stands, m.Join = body, true, false", "m.Stands = body, true"},
	}},
	{name: "a message with a run of its own would join another one later", edits: []textEdit{
		{"transition.go", "	m.Join = false // it has a run of its own, which may be given up\n", ""},
	}},
	{name: "the blobs of joined messages are written again and not referred to", edits: []textEdit{
		{"compact.go", "			run.Joined[i].Message = t.storeMessage(c.Messages[i])", "			_ = t.storeMessage(c.Messages[i])"},
	}},
	{name: "a joined message is not found", edits: []textEdit{
		{"fate.go", "if j.Message.ID == id {", "if false {"},
	}},
	{name: "the blob of a joined message stays", edits: []textEdit{
		{"join.go", "		t.dropBlob(j.Message.Blob)\n		t.outcomes", "		t.outcomes"},
	}},
	{name: "a workspace with a run is not listed", edits: []textEdit{
		{"busy.go", "l.running, l.live = true, h.Run.live()", "l.live = h.Run.live()"},
	}},
	{name: "a workspace with dead letters is not listed", edits: []textEdit{
		{"busy.go", "h.DeadLetters.Count > 0 || h.Suspended > 0", "h.Suspended > 0"},
	}},
	{name: "a workspace with suspended calls is not listed", edits: []textEdit{
		{"busy.go", "h.DeadLetters.Count > 0 || h.Suspended > 0", "h.DeadLetters.Count > 0"},
	}},
	{name: "a workspace stays listed", edits: []textEdit{
		{"busy.go", "	if !known || was.running != is.running ||", "	if !known || !was.running && is.running ||"},
	}},
	{name: "a workspace that waits stays listed", edits: []textEdit{
		{"busy.go", "	if !known || was.waiting != is.waiting {", "	if !known || !was.waiting && is.waiting {"},
	}},
	{name: "a workspace stays listed under an earlier time", edits: []textEdit{
		{"busy.go", "		if was.expires > 0 {", "		if was.expires > 0 && is.expires == 0 {"},
	}},
	{name: "a workspace is not listed under a later time", edits: []textEdit{
		{"busy.go", "		if is.expires > 0 {", "		if is.expires > 0 && was.expires == 0 {"},
	}},
	{name: "the last call to expire counts", edits: []textEdit{
		{inDocument + "suspended.go", "at.Before(due)", "due.Before(at)"},
	}},
	{name: "a workspace without content expires", edits: []textEdit{
		{"operation.go", "t.Snapshot, t.Purge, t.Suspended, t.Expires = nil, 0, 0, 0", "t.Snapshot, t.Purge, t.Suspended = nil, 0, 0"},
	}},
	{name: "a workspace is listed when its head is written the next time", edits: []textEdit{
		{"busy.go", "w := Running.write(l.key, is.running)", "w := Running.write(l.key, was.running)"},
	}},
	{name: "endings leave the head without a trace", edits: []textEdit{
		{"ending.go", "		texts = append(strings.Split(string(packed), listSeparator), texts...)\n", "		_ = packed\n"},
	}},
	{name: "the blob of endings stays", edits: []textEdit{
		{"ending.go", "		t.dropBlob(t.Endings)\n", ""},
	}},
	{name: "a compaction leaves endings without their records", edits: []textEdit{
		{"ending.go", "	if t.Ended == \"\" && t.Endings == \"\" {", "	if t.Ended == \"\" || t.Endings != \"\" {"},
	}},
	{name: "a commit does not check the lease", edits: []textEdit{
		{"transition.go", "if h.Run != nil && by.LeaseID != \"\" && h.Run.LeaseID == by.LeaseID {", "if h.Run != nil {"},
	}},
	{name: "an unknown outcome is a failure", edits: []textEdit{
		{"commit.go", "c.openSeqs = append(c.openSeqs, t.baseSeq)", "return nil, errNoChange"},
	}},
	{name: "an older head is believed", variant: "batch", edits: []textEdit{
		{"ledger.go", "		case l.seen.note(h, before):", "		case l.seen.note(h, before) || true:"},
	}},
	{name: "an operation does not find itself", edits: []textEdit{
		{"commit.go", "if h.hasOp(c.op) {", "if false {"},
	}},
	{name: "an operation that the head has forgotten did not take effect", edits: []textEdit{
		{"commit.go", "case !h.hasOpsSince(seq + 1):", "case false:"},
	}},
	{name: "an attempt on this very head is over", edits: []textEdit{
		{"commit.go", "open = append(open, seq)", "_ = seq"},
	}},
	{name: "a message is finished before its record", edits: []textEdit{
		{"holder.go", "	var to Position\n	h, err := l.commitShared(ctx, shared, l.opts.Retry, func(t *transition) error {\n", `	_, _ = l.commitHead(ctx, func(t *transition) error {
		if err := t.checkLease(by); err != nil {
			return err
		}
		return t.keepOutcome(Outcome{ID: by.MessageID, Ending: work.EndingFinished})
	})
	var to Position
	h, err := l.commitShared(ctx, shared, l.opts.Retry, func(t *transition) error {
`},
	}},
	{name: "reset deletes the head", edits: resetDeletes},
	{name: "reset begins no epoch", edits: []textEdit{{"operation.go", "	t.Epoch = 0 // another one begins\n", ""}}},
	{name: "delete begins no epoch", edits: []textEdit{{"operation.go", "User: t.User, Seq: t.Seq", "User: t.User, Epoch: t.Epoch, Seq: t.Seq"}}},
	{name: "accept begins no epoch", edits: []textEdit{
		{"ledger.go", "+acceptLead, 0, \"\"", "+acceptLead, max(h.Epoch, s.newest.Epoch, s.deletion.Epoch), \"\""},
	}},
	{name: "an epoch begins by the clock alone", edits: []textEdit{
		{"ledger.go", "return nextEpoch(now, max(h.Epoch, s.newest.Epoch, s.deletion.Epoch))", "return nextEpoch(now, 0)"},
	}},
	{name: "a change is made in another epoch", edits: []textEdit{
		{"operation.go", " || t.Epoch != of.Epoch {", " {"},
	}},
	{name: "reset deletes the head and revisions begin again", fault: "restarts", edits: resetDeletes},
	{name: "a message is accepted twice", edits: []textEdit{
		{"submission.go", "case f.Place != PlaceNone:", "case false:"},
	}},
	{name: "a lease is vacated that is another one by now", edits: []textEdit{
		{"takeover.go", "return h.Run.LeaseID == c.Own", "return true"},
	}},
	{name: "a takeover keeps the lease", edits: []textEdit{
		{"takeover.go", "t.Run.Renewals = c.Lease.ID,", "t.Run.Renewals = t.Run.LeaseID,"},
	}},
	{name: "a snapshot past the base of the run", edits: []textEdit{
		{"head.go", "		return h.Run.Base\n", "		return h.Position()\n"},
	}},
	{name: "compact overwrites any head", edits: []textEdit{
		{"transition.go", "	newBlobs       []newBlob ", "	always         bool\n	newBlobs       []newBlob "},
		{"commit.go", "	writes := []*transition{t}\n", "	if t.always {\n		t.cond = store.Always\n	}\n	writes := []*transition{t}\n"},
		{"compact.go", "	t.Snapshot = &s\n", "	t.Snapshot, t.always = &s, true\n"},
	}},
	{name: "reset forgets what it has dropped", edits: []textEdit{
		{"operation.go", "		t.outcomes = append(t.outcomes, Outcome{ID: id, Ending: work.EndingReset})\n", "		_ = id\n"},
	}},
	{name: "revisions come again", variant: "failover", fault: "again"},
	{name: "a run is known by its fencing token", variant: "failover", edits: []textEdit{
		{"content.go", "	newest  contentAt\n", "	newest  contentAt\n	tokens  map[string]uint64\n"},
		{"commit.go", "	c.seen.noteWritten(t.Head)\n", `	c.seen.noteWritten(t.Head)
	if t.Run != nil {
		if c.contents.tokens == nil {
			c.contents.tokens = map[string]uint64{}
		}
		c.contents.tokens[t.Run.LeaseID] = t.Run.Token
	}
`},
		{"transition.go", "h.Run.LeaseID == by.LeaseID {", "(h.Run.LeaseID == by.LeaseID || h.Run.Token == r.contents.tokens[by.LeaseID]) {"},
	}},
	{name: "a rollback goes back too far", edits: []textEdit{
		{"transition.go", "base, err := t.reader.Content(t.ctx, t.Head, t.Run.Base)", "base, err := t.reader.Content(t.ctx, t.Head, t.start())"},
	}},
	{name: "records are read without their chain", variant: "failover", edits: []textEdit{
		{"record.go", "case hash([]byte(after.Chain), body) != s.chain:", "case false:"},
	}},
	{name: "compact drops a record too many", edits: []textEdit{
		{"compact.go", "t.dropRecords(limit.Version)", "t.dropRecords(limit.Version + 1)"},
	}},
	{name: "the past keeps a secret that was replaced", edits: []textEdit{
		{"compact.go", "if force || t.purges(limit) || history <= 0 {", "if force || history <= 0 {"},
	}},
	{name: "what is to be forgotten leaves its records", variant: "batch", edits: []textEdit{
		{"past.go", "			for _, name := range names {\n				if !yield(name, nil) {", "			for _, name := range names[:0] {\n				if !yield(name, nil) {"},
	}},
	{name: "the oldest version is that before the past", edits: []textEdit{
		{"past.go", "		return h.Past.Oldest\n", "		return h.Past.Oldest - 1\n"},
	}},
	{name: "the past is bounded by its last segment", edits: []textEdit{
		{"past.go", "	for total > history && len(segments) > 0 {", "	for total > history && len(segments) > 1 {"},
	}},
	{name: "segments that are joined keep the later snapshot", edits: []textEdit{
		{"past.go", "		newest.Snapshot, newest.Records = segments[n-1].Snapshot,", "		newest.Records ="},
	}},
	{name: "a reset keeps the past", edits: []textEdit{
		{"operation.go", "	if err := t.dropPast(false); err != nil {\n		return err\n	}\n", ""},
	}},
	{name: "cached content stands for that of the past", edits: []textEdit{
		{"content.go", "	if at.Version < h.start().Version {\n		return c.pastContent(ctx, h, at)\n	}\n	from := c.cached()\n	if from.doc != nil && from.Version >= h.start().Version && from", "	from := c.cached()\n	if at.Version < h.start().Version {\n		if from.doc != nil {\n			return from.doc, nil\n		}\n		return c.pastContent(ctx, h, at)\n	}\n	if from.doc != nil && from.Version >= h.start().Version && from"},
	}},
	{name: "compact forgets the outcomes in the records that go", edits: []textEdit{
		{"compact.go", "	if err := t.moveOutcomes(); err != nil { // their records may go\n		return err\n	}\n", ""},
	}},
	{name: "blobs are dropped before the head is written", variant: "batch", edits: []textEdit{
		{"commit.go", "	writes := []*transition{t}\n", `	for _, name := range t.droppedBlobs {
		_ = store.Delete(ctx, c.db, c.blobKey(name), store.Always)
	}
	writes := []*transition{t}
`},
	}},
	{name: "a restarted run keeps its base", edits: []textEdit{
		{"transition.go", "	t.Run.Base, t.Run.Answers, t.Run.Ended = t.Position(), 0, false\n", ""},
	}},
	{name: "the queue is left behind", edits: []textEdit{
		{"transition.go", "	if t.Queue.len() == 0 {\n		return nil\n	}", "	if t.Queue.len() < 100 {\n		return nil\n	}"},
	}},
	{name: "a run is taken over although its lease was renewed", edits: []textEdit{
		{"takeover.go", "return h.LeaseState() == c.Observed", "return h.LeaseState().leaseID == c.Observed.leaseID"},
	}},
	{name: "another head with the same seq is believed", variant: "failover", edits: []textEdit{
		{"ledger.go", " || h.isFork(floor) ||\n\t\th.isFork(before) {", " {"},
	}},
	{name: "what was deleted is believed after a read without a head", variant: "batch", edits: []textEdit{
		{"ledger.go", "	floor := cmp.Or(s.newest, s.deletion)\n", "	floor := s.newest\n"},
		{"ledger.go", "	return cmp.Or(s.newest, s.deletion)\n", "	return s.newest\n"},
	}},
	{name: "a fork that has overtaken what was seen is believed", variant: "failover", edits: []textEdit{
		{"ledger.go", "known != \"\" && known != of.Nonce", "known != \"\" && known != of.Nonce && h.Seq == of.Seq"},
	}},
	{name: "a transition changes the head that is remembered", edits: []textEdit{
		{"commit.go", "Head: h.clone(), ctx", "Head: h, ctx"},
	}},
	{name: "what a remembered head refuses is refused", edits: []textEdit{
		{"commit.go", "if remembered { // the present head may allow it", "if false {"},
	}},
	{name: "a head is replaced although a later one was seen", edits: []textEdit{
		{"commit.go", "if c.basis == basisNewest && c.seen.isPast(h) {", "if false {"},
	}},
	{name: "a remembered head is replaced although a later one was seen", edits: []textEdit{
		{"ledger.go", "raced || l.lastHead == nil || l.lastHead.mark() != seen {", "raced || l.lastHead == nil || seen.Seq == 0 {"},
		{"commit.go", "if c.basis == basisNewest && c.seen.isPast(h) {", "if !remembered && c.basis == basisNewest && c.seen.isPast(h) {"},
	}},
	{name: "a finish does not check what was lost", variant: "failover", edits: []textEdit{
		{"holder.go", "		if err := t.checkHolder(by); err != nil {\n			return err\n		}\n		t.Run.Answers = by.Answers\n		r := t.runRecord(KindFinish", "		if err := t.checkLease(by); err != nil {\n			return err\n		}\n		t.Run.Answers = by.Answers\n		r := t.runRecord(KindFinish"},
	}},
	{name: "a release does not check the lease", edits: []textEdit{
		{"holder.go", "		if err := t.checkLease(by); err != nil {\n			return err\n		}\n		t.Run.LeaseID, t.Run.Holder, t.Run.Renewals = \"\", \"\", 0", "		if t.Run == nil {\n			return errNoChange\n		}\n		t.Run.LeaseID, t.Run.Holder, t.Run.Renewals = \"\", \"\", 0"},
	}},
	{name: "a vacant lease counts an attempt", edits: []textEdit{
		{"takeover.go", "	if !t.Run.Vacant() {\n		attempt++", "	if true {\n		attempt++"},
	}},
	{name: "a takeover of a vacant lease counts none afterwards", edits: []textEdit{
		{"takeover.go", "	if !t.Run.Vacant() {\n		attempt++", "	if !t.Run.Vacant() && attempt > 0 {\n		attempt++"},
	}},
	{name: "the ticket of another Manager is taken", edits: []textEdit{
		{"takeover.go", "if t.Run.Message.Ticket && t.Run.Message.ID != c.Ticket {", "if t.Run.Message.Ticket && c.Ticket == \"-\" {"},
	}},
	{name: "the run of a ticket is given to its predecessor", edits: []textEdit{
		{"transition.go", "	if m.Ticket {\n		lease = lease.Vacant()", "	if m.Ticket && m.ID == \"\" {\n		lease = lease.Vacant()"},
	}},
	{name: "a dead letter is also kept after a retry", edits: []textEdit{
		{"deadletter.go", "rest := append(list[:i:i], list[i+1:]...)", "rest := list"},
	}},
	{name: "a retry forgets the message", edits: []textEdit{
		{"operation.go", "		t.enqueue(t.storeMessage(m))\n", "		_ = m\n"},
	}},
	{name: "a message that was stored and given up does not stand", edits: []textEdit{
		{"holder.go", "t.Run.Message.Stands || stored", "t.Run.Message.Stands || stored && false"},
	}},
	{name: "a message stands that was undone", edits: []textEdit{
		{"holder.go", "kind != KindRollback && t.Version", "t.Version"},
	}},
	{name: "a message stands no longer when it is given up twice", edits: []textEdit{
		{"holder.go", "t.Run.Message.Stands || stored", "stored"},
	}},
	{name: "approved calls of a message that is given up stay approved", edits: []textEdit{
		{"transition.go", "return doc.GiveUp() })", "return nil, nil })"},
	}},
	{name: "a dead letter that is sent again stays", edits: []textEdit{
		{"submission.go", "if s.Message.Stands, err = t.takeDeadLetterFor(s.Message); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{name: "a retry drops the blob of the message", edits: []textEdit{
		{"operation.go", "		m := d.Message\n		if t.Run == nil {", "		m := d.Message\n		if m.Blob != \"\" {\n			t.dropBlob(m.Blob)\n		}\n		if t.Run == nil {"},
	}},
	{name: "a discarded message is forgotten", edits: []textEdit{
		{"operation.go", "return t.endOther(m, work.EndingDiscarded, \"\")", "_ = m\n		return nil"},
	}},
	{name: "a discard removes the first message of the queue", edits: []textEdit{
		{"queue.go", "			if m.ID == id {\n				found = true", "			if m.ID != \"\" {\n				found = true"},
		{"queue.go", "!found && hash == idHash(id) {", "!found && hash != \"\" {"},
	}},
	{name: "a note stays with a number that begins again", edits: []textEdit{
		{"note.go", "!t.Exists() || t.Epoch != of.Epoch {", "!t.Exists() {"},
	}},
	{name: "a reset keeps the notes", edits: []textEdit{
		{"operation.go", "return t.setNotes(nil)", "return nil"},
	}},
	{name: "the blob of notes is left behind", edits: []textEdit{
		{"note.go", "		t.dropBlob(t.Notes)\n", ""},
	}},
	{name: "a note about a message that is lost goes with a copy", edits: []textEdit{
		{"transfer.go", "n.Message >= next", "n.Message > next+1000"},
	}},
	{name: "a cancel ends another run", edits: []textEdit{
		{"operation.go", "if t.Run == nil || t.Run.RunID != runID {", "if t.Run == nil {"},
	}},
	{name: "delete forgets the token", edits: []textEdit{
		{"operation.go", "Token: t.Token + 1, Deleted", "Token: 1, Deleted"},
	}},
	{name: "delete leaves the outcomes", variant: "batch", edits: []textEdit{
		{"operation.go", "		t.dropOutcomes()\n", ""},
	}},
	{name: "an accepted head has the number of one that was seen", variant: "failover", edits: []textEdit{
		{"ledger.go", "max(h.Seq, s.newest.Seq, s.deletion.Seq)+acceptLead, 0", "h.Seq, 0"},
	}},
	{name: "a submission does not check that content fits", edits: []textEdit{
		{"submission.go", "if err := t.reader.checkFits(t.ctx, t.Head); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{name: "the endings that move are the newest", edits: []textEdit{
		{"ending.go", "list[max(0, len(list)-maxOutcomes):]", "list[:min(len(list), 2)]"},
	}},
	{name: "a contender ends a holder although it has made a heartbeat", edits: []textEdit{
		{"incarnation.go", "holderKey(r.Holder), store.IfRevision(observed.revision))", "holderKey(r.Holder), store.Always)"},
	}},
	{name: "a contender does not end the holder", edits: []textEdit{
		{"incarnation.go", "	if observed.revision == \"\" {\n		return nil", "	if observed.revision != \"-\" {\n		return nil"},
	}},
	{name: "a holder that is alive has ended", edits: []textEdit{
		{"incarnation.go", "	case record.Holder != r.Holder:\n		return HolderState", "	case record.Heartbeats > 1:\n		return HolderState"},
	}},
	{name: "a heartbeat replaces any holder record", edits: []textEdit{
		{"incarnation.go", "i.put(ctx, store.IfRevision(i.revision))", "i.put(ctx, store.Always)"},
	}},
	{name: "a heartbeat takes the record of the next incarnation", edits: []textEdit{
		{"incarnation.go", "		case r.Holder != i.record.Holder:\n			return ErrReplaced", "		case r.Holder == \"\":\n			return ErrReplaced"},
	}},
	{name: "a heartbeat writes a record again that was deleted", edits: []textEdit{
		{"incarnation.go", "		case e.Revision == \"\":\n			return fmt.Errorf(\"%w: %s was deleted\", ErrIncarnationEnded, i.key)", "		case e.Revision == \"\":\n			return i.Begin(ctx)"},
	}},
	{name: "an incarnation is used whose beginning is in doubt", edits: []textEdit{
		{"incarnation.go", "		err := i.put(ctx, cond)\n		if !errors.Is(err, store.ErrConflict) {", "		err := i.put(ctx, cond)\n		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnknownOutcome) {"},
	}},
	{name: "a takeover from a holder that has ended counts no attempt", edits: []textEdit{
		{"takeover.go", "	if !t.Run.Vacant() {\n		attempt++", "	if !t.Run.Vacant() && t.Run.Holder == \"\" {\n		attempt++"},
	}},
	{name: "a takeover keeps the holder", edits: []textEdit{
		{"takeover.go", "t.Run.Holder, t.Run.Attempt = c.Lease.holder, attempt", "t.Run.Attempt = attempt"},
	}},
	{name: "a run that begins has no holder", edits: []textEdit{
		{"transition.go", "Holder: lease.holder, RunID", "RunID"},
	}},
	{name: "a cancelled run leaves its suspended calls", edits: []textEdit{
		{"operation.go", "t.cancelPendingCalls, reason", "t.answerPendingCalls, reason"},
	}},
	{name: "a contender answers the calls of the run", edits: []textEdit{
		{"takeover.go", "	if c.How == work.TakeoverRestart {\n		if err := t.restartRun(now)", "	if c.How != work.TakeoverRestart {\n		effects, err := stop()\n		if err == nil && len(effects) > 0 {\n			err = t.addRecord(t.runRecord(kind, now, effects))\n		}\n		if err != nil {\n			return taken, err\n		}\n		t.Run.Base, t.Run.Answers, t.Run.Ended = t.Position(), 0, false\n	} else {\n		if err := t.restartRun(now)"},
	}},
	{name: "a submission is not checked", edits: []textEdit{
		{"submission.go", "	if s.Check != nil {", "	if s.Check != nil && queued {"},
	}},
	{name: "a submission that waits is not checked", edits: []textEdit{
		{"submission.go", "	if s.Check != nil {", "	if s.Check != nil && !queued {"},
	}},
	{name: "a check does not see the message of the run", edits: []textEdit{
		{"submission.go", "if queued && t.Position() == t.Run.Base {", "if false {"},
	}},
	{name: "an import replaces a workspace", edits: []textEdit{
		{"transfer.go", "		if t.Exists() {\n			return work.ErrExists", "		if false {\n			return work.ErrExists"},
	}},
	{name: "an import forgets what has ended", edits: []textEdit{
		{"transfer.go", "err != nil || len(c.Outcomes) == 0 {", "err != nil || len(c.Outcomes) >= 0 {"},
	}},
	{name: "a copy has what the run may lose", edits: []textEdit{
		{"transfer.go", "l.Content(ctx, h, h.settled())", "l.Content(ctx, h, h.Position())"},
	}},
	{name: "cached content is known by its version", variant: "failover", edits: []textEdit{
		{"content.go", "		if from.Position == at {", "		if from.Version == at.Version {"},
	}},
	{name: "content is taken for fitting before it is checked", edits: []textEdit{
		{"submission.go", "		if err := l.contents.fits(unchecked.doc); err != nil {", "		l.contents.noteFitting(unchecked.Position)\n		if err := l.contents.fits(unchecked.doc); err != nil {"},
	}},
	{name: "cached content is changed", edits: []textEdit{
		{"content.go", "copied.doc = copied.doc.Clone()", "copied.doc = c.contents.newest.doc"},
	}},
	{name: "a head that another process has replaced is remembered", edits: []textEdit{
		{"commit.go", "				t.ledger.noteRace(t.remembered)\n", "				t.ledger.noteRace(t.remembered)\n				t.ledger.cacheHead(t.Head, t.ledger.lastRevision)\n"},
	}},
	{name: "a snapshot that was collected is empty", edits: []textEdit{
		{"content.go", "	parts, err := c.fetchBlobs(ctx, names)\n", "	parts, err := c.fetchBlobs(ctx, names)\n	if isMissing(err) {\n		return document.New(), nil\n	}\n"},
	}},
	{name: "a record that was collected has no effects", edits: []textEdit{
		{"records.go", "	blobs, failed := c.fetchBlobs(ctx, names)\n", "	blobs, failed := c.fetchBlobs(ctx, names)\n	if isMissing(failed) {\n		blobs, failed = append(blobs, []byte(`{}`)), nil\n	}\n"},
	}},
	{name: "outcomes are cached under another name", edits: []textEdit{
		{"ending.go", "	t.Ended, t.Endings, t.Outcomes = \"\", \"\", t.addBlob(data)\n	t.reader.contents.noteOutcomes(t.Outcomes, list)\n",
			"	t.reader.contents.noteOutcomes(t.Outcomes, list)\n	t.Ended, t.Endings, t.Outcomes = \"\", \"\", t.addBlob(data)\n"},
	}},
	{name: "the index of a newer queue is kept for an older head", edits: []textEdit{
		{"queue.go", "if ok && known.first <= first {", "if ok {"},
	}},
	{name: "a reference of a result is not counted", finder: documents, edits: []textEdit{
		{inDocument + "references.go", "				*to, fit = runs, fit && ok\n", "				_, fit = *to, fit && ok && len(runs) >= 0\n"},
	}},
	{name: "a conversation that was shortened leaves no unused messages", edits: []textEdit{
		{inDocument + "edits.go", "d.unused || e.Kind != state.EffectAppend", "d.unused || e.Kind == state.EffectSet || e.Field == fieldResults"},
	}},
	{name: "messages that are imported are used", finder: documents, edits: []textEdit{
		{inDocument + "edits.go", "err == nil && added {", "err == nil && added && false {"},
	}},
	{name: "a result that was removed leaves no unused messages", finder: documents, edits: []textEdit{
		{inDocument + "edits.go", "d.unused || e.Kind != state.EffectAppend", "d.unused || e.Kind == state.EffectSet || e.Field == fieldEntries"},
	}},
	{name: "a document that was decoded has no unused messages", finder: documents, edits: []textEdit{
		{inDocument + "document.go", "	d.unused = true\n", ""},
	}},
	{name: "clones share the index of messages", finder: documents, edits: []textEdit{
		{inDocument + "document.go", "c.messages.Store(x.clone())", "c.messages.Store(x)"},
	}},
	{name: "the index finds a message that was deleted", finder: documents, edits: []textEdit{
		{inDocument + "messages.go", "if known, _ := x.number(old.json()); known == n {", "if known, _ := x.number(old.json()); known == 0 {"},
	}},
	{name: "a snapshot that was prepared is written although the content has changed", edits: []textEdit{
		{"compact.go", "if content.text == nil || content.at != limit {", "if content.text == nil {"},
	}},
	{name: "the run that was stored short has its base elsewhere", edits: []textEdit{
		{"head_json.go", "if r.Base == h.Position() {", "if r.Base.Version <= h.Version {"},
	}},
	{name: "undoing a run lets its numbers be given again", edits: []textEdit{
		{inDocument + "edits.go", "(field == fieldVersion || field == fieldNumbers)", "field == fieldVersion"},
	}},
	{name: "who has stored messages is not known after they were read", edits: []textEdit{
		{"content.go", "from.doc.ApplyRecord(r.Effects, originOf(r))", "from.doc.Apply(r.Effects)"},
	}},
	{name: "messages have the time at which the record is read", edits: []textEdit{
		{"record.go", "document.Origin{Time: r.Time,", "document.Origin{Time: CurrentTime(),"},
	}},
	{name: "a conversation is kept that has changed", finder: documents, edits: []textEdit{
		{inDocument + "edits.go", "			rewrites = true\n			d.unused", "			d.unused"},
	}},
	{name: "a conversation is kept that was shortened", finder: documents, edits: []textEdit{
		{inDocument + "window.go", "		short = d.conversation.shortened(messages, results)\n", "		short = d.conversation.shortened(messages, nil)\n		_ = results\n"},
	}},
	{name: "the conversation of the State before a commit is kept", finder: programs, edits: []textEdit{
		{inWorkspace + "workspace.go", "c.doc.ApplySaved(d.Effects, c.origin(d), c.schema, d.state)", "c.doc.ApplySaved(d.Effects, c.origin(d), c.schema, c.storedState)"},
	}},
	{name: "content is cached at the head that another process has written since a finish", finder: programs, edits: []textEdit{
		{inWorkspace + "finish.go", "r.ledger.CacheContent(at, doc)", "r.ledger.CacheContent(h.Position(), doc)"},
	}},
	{name: "content is cached at the head that another process has written since an update", finder: programs, edits: []textEdit{
		{inWorkspace + "maintenance.go", "if h.Version == c.position.Version+1 && c.noteStored", "if c.noteStored"},
	}},
	{name: "the content of a run is cached without the effects of its end", finder: programs, edits: []textEdit{
		{inWorkspace + "finish.go", "r.ledger.CacheContent(at, doc)", "r.ledger.CacheContent(at, r.doc)"},
	}},
	{name: "the head of the user part is written after that of the thread", finder: families, edits: []textEdit{
		{"commit.go", "	err = c.replaceHeads(ctx, writes)\n", "	for i := range writes {\n		if err = c.replaceHeads(ctx, writes[i:i+1]); err != nil {\n			break\n		}\n	}\n"},
	}},
	{name: "the head of the user part is written before that of the thread", finder: families, edits: []textEdit{
		{"commit.go", "	err = c.replaceHeads(ctx, writes)\n", "	for i := range writes {\n		if err = c.replaceHeads(ctx, writes[len(writes)-1-i:len(writes)-i]); err != nil {\n			break\n		}\n	}\n"},
	}},
	{name: "what is shared is merged into an old value", finder: families, edits: []textEdit{
		{"shared.go", "t.reader.Content(t.ctx, t.Head, t.Position())", "t.reader.Content(t.ctx, t.Head, t.start())"},
	}},
	{name: "any head of the user part is replaced", finder: families, edits: []textEdit{
		{"commit.go", "		other.sign(nonce)\n", "		other.sign(nonce)\n		other.cond = store.Always\n"},
	}},
	{name: "any head of a thread is replaced if something is shared", finder: families, edits: []textEdit{
		{"commit.go", "		other.sign(nonce)\n", "		other.sign(nonce)\n		t.cond = store.Always\n"},
	}},
	{name: "the user part has the operation of another one", finder: families, edits: []textEdit{
		{"commit.go", "	c.other.op = c.op\n", ""},
		{"commit.go", "		other.sign(nonce)\n", "		other.sign(c.other.op + attemptText(c.cost.Tries))\n"},
		{"commit.go", "	if h.hasOp(c.op) {\n", "	if c.other == nil && h.hasOp(c.op) {\n"},
	}},
	{name: "only the user part tells that an operation took effect", finder: families, edits: []textEdit{
		{"commit.go", "	if h.hasOp(c.op) {\n", "	if c.other == nil && h.hasOp(c.op) {\n"},
	}},
	{name: "a thread that cannot be finished changes the user part", finder: families, edits: []textEdit{
		{"commit.go", "	t, written, err := c.prepare(ctx, apply)\n	if t == nil {\n		return written, err\n	}\n", "	t, written, err := c.prepare(ctx, apply)\n	if t == nil && err != nil && c.other != nil {\n		if other, _, _ := c.prepareOther(ctx); other != nil {\n			other.sign(c.op + attemptText(c.cost.Tries))\n			_ = c.replaceHeads(ctx, []*transition{other})\n		}\n	}\n	if t == nil {\n		return written, err\n	}\n"},
	}},
	{name: "a run that does not finish leaves what it has written to what is shared", finder: families, edits: []textEdit{
		{inDocument + "suspended.go", "slices.Concat(d.DropShared(), effects, answers)", "slices.Concat(effects, answers)"},
	}},
	{name: "a run that begins anew keeps what it has written to what is shared", finder: families, edits: []textEdit{
		{"transition.go", "	effects, err := t.undoRun()\n	if err == nil && len(effects) > 0 {", "	effects, err := t.undoRun()\n	if err == nil && len(effects) < 0 {"},
	}},
	{name: "a run that has lost its lease begins anew", finder: families, edits: []textEdit{
		{"holder.go", "	return l.commitRun(ctx, func(t *transition) error {\n		if err := t.checkHolder(by); err != nil {\n			return err\n		}\n		t.renewLease(by)\n		return t.restartRun(now)", "	return l.commitRun(ctx, func(t *transition) error {\n		if t.Run == nil {\n			return work.ErrFenced\n		}\n		t.renewLease(by)\n		return t.restartRun(now)"},
	}},
	{name: "a thread is made without a look at the user part", finder: families, edits: []textEdit{
		{"commit.go", "c.opts.UserPart != nil && t.makes && t.Deleted.IsZero()", "false && t.makes"},
	}},
	{name: "a thread is made after the user was deleted", finder: families, edits: []textEdit{
		{"commit.go", "		case t.Closed:\n", "		case false:\n"},
	}},
	{name: "the user part is made again after the user was deleted", finder: families, edits: []textEdit{
		{"commit.go", "t.makes && h.Closed && t.Deleted.IsZero()", "t.makes && h.Closed && false"},
	}},
	{name: "an attempt on this very head of the user part is over", finder: families, edits: []textEdit{
		{"commit.go", "			c.other.openSeqs = append(c.other.openSeqs, other.baseSeq)\n", "			c.openSeqs = c.openSeqs[:len(c.openSeqs)-1]\n"},
	}},
	{name: "a commit does not note what it has stored", finder: programs, edits: []textEdit{
		{inWorkspace + "workspace.go", "c.position, c.storedState, c.storedMemory = at, d.state, d.memory", "c.position, c.storedState = at, d.state"},
	}},
}

var resetDeletes = []textEdit{
	{"operation.go", "	var ids []string\n	h, err := l.commitHead", "	_ = store.Delete(ctx, l.db, l.key, store.Always)\n	var ids []string\n	h, err := l.commitHead"},
}

// mutation returns the edits.
func (m *mutant) mutation() mutation.Mutant {
	edits := mutation.Mutant{Name: m.name}
	for _, e := range m.edits {
		edits.Also = append(edits.Also, mutation.Edit(e))
	}
	return edits
}

func TestMutantsCompile(t *testing.T) {
	var edits []mutation.Mutant
	for _, m := range mutants {
		edits = append(edits, m.mutation())
	}
	mutation.Compile(t, edits)
}

// TestMutants builds the tests of a package with each mutant, and requires that
// the explorer, or the test that it names, finds it. All take minutes. It runs
// only if STATE_MUTANTS is set.
func TestMutants(t *testing.T) {
	for _, m := range mutation.Drawn(t, mutants) {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			m.test(t)
		})
	}
}

var finding = regexp.MustCompile(`VIOLATION with STATE_SEED=\d+.*|\[rapid\] \w+ after .*|--- FAIL: Test(Unused|Purges|Close|Kill).*`)

func (m *mutant) test(t *testing.T) {
	by := m.finder
	if by == (finder{}) {
		by = explorers
	}
	program := m.mutation().Build(t, by.folder, strings.Fields(by.files)...)
	cmd := exec.Command(program, "-test.run=^("+by.tests+")$", by.flag)
	cmd.Env = append(os.Environ(), "STATE_VARIANT="+m.variant, "STATE_FAULT="+m.fault, "STATE_SEED=", "STATE_EFFORT=40")
	out, err := cmd.CombinedOutput()
	found := finding.Find(out)
	require.Error(t, err, "%s has not found it", by.tests)
	require.NotEmpty(t, found, "%s", out[max(0, len(out)-2000):])
	require.False(t, bytes.Contains(found, []byte("panic")), "%s", found)
	t.Logf("%s", found)
}

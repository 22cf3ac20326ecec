package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/internal/announce"
	"github.com/agentstate/state/store"
)

const (
	// presenceKey ends the subject of the message that has the announcements of
	// all names. No key has this subject.
	presenceKey = "=presence"
	// secondLook is the time after which a subject without a subscriber is
	// tried again. The servers of a cluster learn of a new subscription one
	// after the other.
	secondLook = 100 * time.Millisecond
	// answerTimeout is the time after which a process that has a subscription
	// does not answer. A request that was sent to a process while it was killed
	// is not answered either, and is therefore repeated after repeatTime.
	answerTimeout = 2 * time.Second
	repeatTime    = 250 * time.Millisecond
	// maxForget is the number of announcements that a call of Announce tries to
	// forget.
	maxForget = 16
)

// Announce implements [store.Presence]. An announcement is a subscription to
// the subject state.presence.BUCKET.ID, which answers requests and ends with
// the connection. One message of the bucket has the IDs of all names. A user
// with access rights must be allowed to subscribe and publish to these subjects.
//
// A name is absent before its process has ended if the connection breaks, or
// its server is restarted, or the servers of a cluster lose each other. lost is
// then closed, although the client connects again. A process that is stopped,
// or has lost its network, does not answer: until its server gives up the
// connection (after some minutes by default), Announce and IsPresent return an
// error.
func (s *Store) Announce(ctx context.Context, name string) (lost <-chan struct{}, withdraw func() error, err error) {
	if err := store.CheckKey(name); err != nil {
		return nil, nil, newError("announce", name, err)
	}
	call, endCall, err := s.beginCall(ctx)
	if err != nil {
		return nil, nil, newError("announce", name, err)
	}
	defer endCall()
	a := &announcement{store: s, name: name, id: string(store.NewRevision()), broken: make(chan struct{})}
	if err := a.claim(call); err != nil {
		a.end()
		return nil, nil, newError("announce", name, s.withClosed(err))
	}
	k := announce.NewKeeper(announce.Claim{Interval: 5 * time.Second, Check: a.check, Release: a.release, Broken: a.broken})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifetime.Err() != nil {
		a.end()
		return nil, nil, newError("announce", name, store.ErrClosed)
	}
	s.keepers.Go(func() { k.Run(s.lifetime.Done()) })
	return k.Lost(), func() error {
		if err := k.Withdraw(); err != nil {
			return newError("withdraw", name, err)
		}
		return nil
	}, nil
}

// IsPresent implements [store.Presence]. It asks the process that has announced
// the name.
func (s *Store) IsPresent(ctx context.Context, name string) (bool, error) {
	if err := store.CheckKey(name); err != nil {
		return false, newError("is present", name, err)
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return false, newError("is present", name, err)
	}
	defer endCall()
	all, err := s.readAnnouncements(ctx)
	present := false
	if id := all.ids[name]; err == nil && id != "" {
		present, err = s.isAnswering(ctx, id)
	}
	if err != nil {
		return false, newError("is present", name, s.withClosed(err))
	}
	return present, nil
}

// announcement is a name and its subscription.
type announcement struct {
	store        *Store
	name, id     string
	subscription *nats.Subscription
	status       chan nats.Status // changes of the connection
	broken       chan struct{}    // closed after the first change
}

// claim subscribes before it announces, so that no other call takes the
// announcement for one that has ended. It does not end the subscription if it
// fails.
func (a *announcement) claim(ctx context.Context) (err error) {
	s := a.store
	a.status = s.nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	go func() {
		<-a.status // end closes it
		close(a.broken)
	}()
	a.subscription, err = s.nc.Subscribe(s.announcementSubject(a.id), func(msg *nats.Msg) {
		_ = msg.Respond(nil) // the caller asks again
	})
	if err != nil {
		return err
	}
	if answers, err := s.isAnswering(ctx, a.id); err != nil || !answers {
		return errors.Join(errors.New("the server does not accept the subscription"), err)
	}
	var ended map[string]string // announcements that certainly have
	return s.updateAnnouncements(ctx, func(ids map[string]string) (bool, error) {
		if id := ids[a.name]; id != "" && ended[a.name] != id {
			if answers, err := s.isAnswering(ctx, id); err != nil || answers {
				return false, errors.Join(conflictIf(answers), err)
			}
		}
		if ended == nil {
			ended = s.findEnded(ctx, ids)
		}
		maps.DeleteFunc(ids, func(name, id string) bool { return ended[name] == id })
		ids[a.name] = a.id
		return true, nil
	})
}

func conflictIf(present bool) error {
	if present {
		return store.ErrConflict
	}
	return nil
}

func (a *announcement) check(ctx context.Context) error {
	all, err := a.store.readAnnouncements(ctx)
	if err != nil {
		return err
	}
	answers, err := a.store.isAnswering(ctx, a.id)
	if err == nil && (!answers || all.ids[a.name] != a.id) {
		err = fmt.Errorf("%w: the announcement", store.ErrNotFound)
	}
	return err
}

// release removes the name before it ends the subscription, because servers of
// a cluster notice that later. After Close, only the subscription is left.
func (a *announcement) release(ctx context.Context) error {
	defer a.end()
	if a.store.lifetime.Err() != nil {
		return nil
	}
	return a.store.updateAnnouncements(ctx, func(ids map[string]string) (bool, error) {
		if ids[a.name] != a.id {
			return false, nil
		}
		delete(ids, a.name)
		return true, nil
	})
}

// end ends the subscription. Without that, the client would subscribe again
// when it connects again.
func (a *announcement) end() {
	if a.subscription != nil {
		_ = a.subscription.Unsubscribe() // fails if the connection is closed
	}
	a.store.nc.RemoveStatusListener(a.status)
	<-a.broken
}

func (s *Store) announcementSubject(id string) string {
	return "state.presence." + s.kv.Bucket() + "." + id
}

// isAnswering reports whether an announcement has a subscription. It returns an
// error if there is one and its process does not answer.
func (s *Store) isAnswering(ctx context.Context, id string) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for missing := false; ; {
		err := s.request(limited, id)
		switch {
		case err == nil:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case limited.Err() != nil:
			return false, fmt.Errorf("%w: the process that announced the name does not answer", nats.ErrTimeout)
		case errors.Is(err, context.DeadlineExceeded):
			continue
		case !errors.Is(err, nats.ErrNoResponders):
			return false, err
		case missing:
			return false, nil
		}
		missing = true
		select {
		case <-time.After(secondLook):
		case <-limited.Done():
		}
	}
}

// request asks a process for an answer, and waits for a part of answerTimeout.
func (s *Store) request(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, repeatTime)
	defer cancel()
	_, err := s.nc.RequestWithContext(ctx, s.announcementSubject(id), nil)
	return err
}

// findEnded returns some of the announcements that have ended. A process that
// was killed does not remove its own.
func (s *Store) findEnded(ctx context.Context, ids map[string]string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 5*secondLook)
	defer cancel()
	var mu sync.Mutex
	ended := map[string]string{}
	var looks sync.WaitGroup
	looking := 0
	for name, id := range ids { // in random order
		if looking++; looking > maxForget {
			break
		}
		looks.Go(func() {
			if answers, err := s.isAnswering(ctx, id); err == nil && !answers {
				mu.Lock()
				defer mu.Unlock()
				ended[name] = id
			}
		})
	}
	looks.Wait()
	return ended
}

// announcements are the announcements of a bucket, which may have ended.
type announcements struct {
	ids      map[string]string // by name
	sequence uint64            // of the message
}

func (s *Store) readAnnouncements(ctx context.Context) (announcements, error) {
	all := announcements{ids: map[string]string{}}
	msg, err := s.stream.GetLastMsgForSubject(ctx, s.subject+presenceKey)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	all.sequence = msg.Sequence
	if err := json.Unmarshal(msg.Data, &all.ids); err != nil {
		return all, fmt.Errorf("the announcements were not written by this package: %w", err)
	}
	return all, nil
}

// updateAnnouncements replaces the announcements if change returns true. It
// calls change again if others have changed them in the meantime.
func (s *Store) updateAnnouncements(ctx context.Context, change func(ids map[string]string) (bool, error)) error {
	for {
		all, err := s.readAnnouncements(ctx)
		if err != nil {
			return err
		}
		if changed, err := change(all.ids); err != nil || !changed {
			return err
		}
		data, err := json.Marshal(all.ids)
		if err != nil {
			return err
		}
		_, err = s.js.PublishMsg(ctx, &nats.Msg{
			Subject: s.subject + presenceKey,
			Header:  nats.Header{expectedHeader: {strconv.FormatUint(all.sequence, 10)}},
			Data:    data,
		})
		if !isWrongSequence(err) {
			return err
		}
	}
}

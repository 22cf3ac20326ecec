package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/internal/announce"
	"github.com/agentstate/state/store"
)

// announceScript announces the name ARGV[1] as the announcement ARGV[2], whose
// channel is ARGV[3] and ARGV[2]. It returns 1, or 0 if the name is present, or
// -1 if the server has no subscriber of the channel. It removes the
// announcements that have ended.
var announceScript = newScript(`
local function subscribed(id) return redis.call('PUBSUB', 'NUMSUB', ARGV[3] .. id)[2] > 0 end
local current = redis.call('HGET', KEYS[1], ARGV[1])
if current and subscribed(current) then return 0 end
if not subscribed(ARGV[2]) then return -1 end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if not subscribed(all[i + 1]) then redis.call('HDEL', KEYS[1], all[i]) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
`)

// presentScript returns 1 if the name ARGV[1] is present, and by the
// announcement ARGV[2] if that is not empty, or else 0. ARGV[3] begins the
// names of channels.
var presentScript = newScript(`
local id = redis.call('HGET', KEYS[1], ARGV[1])
if not id or (ARGV[2] ~= '' and ARGV[2] ~= id) then return 0 end
return redis.call('PUBSUB', 'NUMSUB', ARGV[3] .. id)[2]
`)

// withdrawScript removes the name ARGV[1] if its announcement is ARGV[2].
var withdrawScript = newScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
return 0
`)

// Announce implements [store.Presence]. An announcement is a subscription to a
// channel, on a connection of its own, which Redis ends with the connection. A
// user with access rights needs the channels that begin with
// "{state:}presence:".
//
// A name is absent before its process has ended if its connection breaks, the
// server is restarted or fails over to a replica, the slot moves to another
// node of a cluster, or an administrator ends the connection. If the machine of
// a process loses power or network, its names are present until Redis gives up
// the connection (tcp-keepalive, 300 seconds by default).
func (s *Store) Announce(ctx context.Context, name string) (lost <-chan struct{}, withdraw func() error, err error) {
	if err := cmp.Or(store.CheckKey(name), s.checkUsable(ctx)); err != nil {
		return nil, nil, newError("announce", name, err)
	}
	a := &announcement{store: s, name: name, id: string(store.NewRevision()), broken: make(chan struct{})}
	if err := a.claim(ctx); err != nil {
		return nil, nil, newError("announce", name, err)
	}
	k := announce.NewKeeper(announce.Claim{Interval: 5 * time.Second, Check: a.check, Release: a.release, Broken: a.broken})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		_ = a.subscription.Close()
		return nil, nil, newError("announce", name, store.ErrClosed)
	}
	s.keepers.Go(func() { k.Run(s.closed) })
	return k.Lost(), func() error {
		if err := k.Withdraw(); err != nil {
			return newError("withdraw", name, err)
		}
		return nil
	}, nil
}

// announcement is a name and its subscription.
type announcement struct {
	store        *Store
	name, id     string
	subscription *redis.PubSub
	broken       chan struct{} // closed by receive
}

// claim subscribes before it announces, so that no other call takes the
// announcement for one that has ended.
func (a *announcement) claim(ctx context.Context) error {
	s := a.store
	// The client would let the deadline of ctx end the connection, which ends
	// the subscription and is another error.
	background := context.WithoutCancel(ctx)
	a.subscription = s.client.Subscribe(background, s.presence+":"+a.id)
	err := s.awaitReply(ctx, func() error {
		_, err := a.subscription.Receive(background)
		return err
	})
	var reply any
	if err == nil {
		reply, err = a.run(ctx, announceScript)
	}
	switch {
	case err != nil:
	case reply == int64(0):
		err = store.ErrConflict
	case reply != int64(1):
		err = errors.New("the server does not know the subscription")
	}
	if err != nil {
		_ = a.subscription.Close()
		return err
	}
	go a.receive()
	return nil
}

// receive waits for the end of the connection. It ends when the subscription is
// closed, which release does after any other end. The client would connect
// again.
func (a *announcement) receive() {
	defer close(a.broken)
	for {
		if _, err := a.subscription.Receive(context.Background()); err != nil {
			return
		}
	}
}

func (a *announcement) run(ctx context.Context, script script) (any, error) {
	s := a.store
	return s.runScriptOn(ctx, script, []any{s.presence}, []any{a.name, a.id, s.presence + ":"})
}

func (a *announcement) check(ctx context.Context) error {
	reply, err := a.run(ctx, presentScript)
	if err == nil && reply != int64(1) {
		err = fmt.Errorf("%w: the announcement", store.ErrNotFound)
	}
	return err
}

// release removes the name before it closes the connection, because the server
// notices that later. After Close, only the connection is left.
func (a *announcement) release(ctx context.Context) error {
	var err error
	if !a.store.isClosed() {
		_, err = a.run(ctx, withdrawScript)
	}
	closeErr := a.subscription.Close()
	<-a.broken // the end of receive
	return cmp.Or(err, closeErr)
}

// IsPresent implements [store.Presence].
func (s *Store) IsPresent(ctx context.Context, name string) (bool, error) {
	if err := cmp.Or(store.CheckKey(name), s.checkUsable(ctx)); err != nil {
		return false, newError("is present", name, err)
	}
	a := &announcement{store: s, name: name}
	reply, err := a.run(ctx, presentScript)
	if err != nil {
		return false, newError("is present", name, err)
	}
	subscribers, ok := reply.(int64)
	if !ok {
		return false, newError("is present", name, errReply)
	}
	return subscribers > 0, nil
}

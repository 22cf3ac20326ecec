package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisLimit appends the message and its answer to lists, with a command each.
type redisLimit struct {
	client *redis.Client
	set    string
	answer model
}

func openRedisLimit(_ context.Context, s site, answer model) (handler, error) {
	c, err := s.redis()
	if err != nil {
		return nil, err
	}
	return &redisLimit{c, s.set, answer}, nil
}

func (l *redisLimit) fill(context.Context, []string) error { return nil }

func (l *redisLimit) key(role, user string) string { return l.set + ":" + role + ":" + user }

func (l *redisLimit) handle(ctx context.Context, m message) (string, error) {
	if err := l.client.RPush(ctx, l.key("user", m.user), m.text).Err(); err != nil {
		return "", err
	}
	reply := l.answer(m)
	return reply, l.client.RPush(ctx, l.key("assistant", m.user), reply).Err()
}

func (l *redisLimit) texts(ctx context.Context, user string) ([]string, error) {
	return l.client.LRange(ctx, l.key("user", user), 0, -1).Result()
}

func (l *redisLimit) close() error { return l.client.Close() }

// redisContents has the messages and the results of each user in two lists.
type redisContents struct {
	client *redis.Client
	set    string
}

func openRedisContents(s site) (*redisContents, error) {
	c, err := s.redis()
	if err != nil {
		return nil, err
	}
	return &redisContents{c, s.set}, nil
}

func (c *redisContents) key(kind, user string) string { return c.set + ":" + kind + ":{" + user + "}" }

// appendScript appends a message and its answer, unless the message is there.
var appendScript = redis.NewScript(`
for _, e in ipairs(redis.call('LRANGE', KEYS[1], -1, -1)) do
  if e == ARGV[2] then return 0 end
end
redis.call('RPUSH', KEYS[1], ARGV[1], ARGV[2])
redis.call('LTRIM', KEYS[1], -50, -1)
redis.call('RPUSH', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[2], -50, -1)
return 1`)

func (c *redisContents) load(ctx context.Context, user string) ([]entry, error) {
	all, err := c.client.LRange(ctx, c.key("talk", user), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	return parseEntries(all)
}

func parseEntries(all []string) ([]entry, error) {
	entries := make([]entry, len(all))
	for i, text := range all {
		if err := json.Unmarshal([]byte(text), &entries[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (c *redisContents) handle(ctx context.Context, m message, answer model) (string, error) {
	entries, err := c.load(ctx, m.user)
	if err != nil {
		return "", err
	}
	if reply, found := replyIn(entries, m.id); found {
		return reply, nil
	}
	reply := answer(m)
	args, err := redisArgs(entries, m, reply)
	if err != nil {
		return "", err
	}
	return reply, appendScript.Run(ctx, c.client, []string{c.key("talk", m.user), c.key("results", m.user)}, args...).Err()
}

// redisArgs returns what is appended for a message: two entries and a result.
func redisArgs(entries []entry, m message, reply string) ([]any, error) {
	asked, err := json.Marshal(entry{m.id, "user", m.text})
	if err != nil {
		return nil, err
	}
	answered, err := json.Marshal(entry{m.id, "assistant", reply})
	if err != nil {
		return nil, err
	}
	body, err := newResult(int64(len(entries)), reply)
	return []any{string(asked), string(answered), body}, err
}

func (c *redisContents) fill(ctx context.Context, users []string) error {
	return each(users, func(user string) error {
		for i := range int64(kept) {
			if _, err := c.handle(ctx, newMessage(user, -1-i), scripted); err != nil {
				return fmt.Errorf("peers: fill: %w", err)
			}
		}
		return nil
	})
}

func (c *redisContents) texts(ctx context.Context, user string) (texts []string, err error) {
	entries, err := c.load(ctx, user)
	for _, e := range entries {
		if e.Role == "user" {
			texts = append(texts, e.Text)
		}
	}
	return texts, err
}

func (c *redisContents) close() error { return c.client.Close() }

// redisRows is rows with two scripts in place of two transactions: one accepts
// a message, takes the lease and reads, the other stores and gives the lease
// back.
type redisRows struct {
	*redisContents
	answer model
}

func openRedisRows(_ context.Context, s site, answer model) (handler, error) {
	c, err := openRedisContents(s)
	if err != nil {
		return nil, err
	}
	return &redisRows{c, answer}, nil
}

// acceptScript returns the reply to a message that is handled, and otherwise
// sees to it that the message is in the inbox. takeScript also takes the lease,
// and returns its epoch, the first message of the inbox and the conversation.
const accepting = `
local reply = redis.call('HGET', KEYS[2], ARGV[1])
if reply and reply ~= '' then return {reply} end
if not reply then
  redis.call('RPUSH', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[2], ARGV[1], '')
end
`

var (
	acceptScript = redis.NewScript(accepting + `return {}`)
	takeScript   = redis.NewScript(accepting + `
local expires = tonumber(redis.call('HGET', KEYS[3], 'expires') or '0')
if expires >= tonumber(ARGV[3]) then return {} end
redis.call('HSET', KEYS[3], 'expires', ARGV[4])
local epoch = redis.call('HINCRBY', KEYS[3], 'epoch', 1)
return {'', epoch, redis.call('LINDEX', KEYS[1], 0), redis.call('LRANGE', KEYS[4], 0, -1)}`)
	finishScript = redis.NewScript(`
if redis.call('HGET', KEYS[3], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[3], 'expires', '0')
redis.call('LPOP', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('RPUSH', KEYS[4], ARGV[4], ARGV[5])
redis.call('LTRIM', KEYS[4], -50, -1)
redis.call('RPUSH', KEYS[5], ARGV[6])
redis.call('LTRIM', KEYS[5], -50, -1)
return 1`)
)

func (r *redisRows) keys(user string) []string {
	return []string{r.key("inbox", user), r.key("replies", user), r.key("lease", user), r.key("talk", user), r.key("results", user)}
}

func (r *redisRows) submit(ctx context.Context, m message) (func(ctx context.Context) (string, error), error) {
	body, err := json.Marshal(entry{m.id, "user", m.text})
	if err != nil {
		return nil, err
	}
	err = acceptScript.Run(ctx, r.client, r.keys(m.user), m.id, string(body)).Err()
	return func(ctx context.Context) (string, error) { return r.handle(ctx, m) }, err
}

func (r *redisRows) handle(ctx context.Context, m message) (string, error) {
	body, err := json.Marshal(entry{m.id, "user", m.text})
	if err != nil {
		return "", err
	}
	for {
		now := time.Now()
		got, err := takeScript.Run(ctx, r.client, r.keys(m.user), m.id, string(body), now.UnixMilli(), now.Add(leaseTime).UnixMilli()).Slice()
		if err != nil {
			return "", err
		}
		switch len(got) {
		case 1:
			return got[0].(string), nil
		case 0:
			select {
			case <-time.After(waitTime):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		default:
			first, reply, err := r.work(ctx, m.user, got)
			if err != nil || first == m.id {
				return reply, err
			}
		}
	}
}

// work handles the first message of the inbox, which takeScript has returned.
func (r *redisRows) work(ctx context.Context, user string, got []any) (id, reply string, err error) {
	var first entry
	if err := json.Unmarshal([]byte(got[2].(string)), &first); err != nil {
		return "", "", err
	}
	var all []string
	for _, text := range got[3].([]any) {
		all = append(all, text.(string))
	}
	entries, err := parseEntries(all)
	if err != nil {
		return "", "", err
	}
	m := message{user, first.ID, first.Text}
	reply = r.answer(m)
	args, err := redisArgs(entries, m, reply)
	if err != nil {
		return "", "", err
	}
	stored, err := finishScript.Run(ctx, r.client, r.keys(user), append([]any{got[1], m.id, reply}, args...)...).Int()
	if stored == 0 {
		m.id = "" // fenced: the message is handled by another holder
	}
	return m.id, reply, err
}

func (r *redisRows) fill(ctx context.Context, users []string) error {
	return r.redisContents.fill(ctx, users)
}

// redisJSON replaces a document if nobody else has replaced it in the meantime.
type redisJSON struct {
	client *redis.Client
	set    string
	answer model
}

func openRedisJSON(_ context.Context, s site, answer model) (handler, error) {
	c, err := s.redis()
	if err != nil {
		return nil, err
	}
	return &redisJSON{c, s.set, answer}, nil
}

func (j *redisJSON) key(user string) string { return j.set + ":doc:" + user }

func (j *redisJSON) fill(ctx context.Context, users []string) error {
	for _, user := range users {
		data, err := newDocument(user)
		if err != nil {
			return err
		}
		if err := j.client.Set(ctx, j.key(user), data, 0).Err(); err != nil {
			return fmt.Errorf("peers: fill: %w", err)
		}
	}
	return nil
}

func (j *redisJSON) handle(ctx context.Context, m message) (reply string, err error) {
	key := j.key(m.user)
	for {
		err := j.client.Watch(ctx, func(t *redis.Tx) error {
			data, err := t.Get(ctx, key).Bytes()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			changed, r, err := change(data, m, j.answer)
			if err != nil {
				return err
			}
			reply = r
			_, err = t.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key, changed, 0).Err() })
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return reply, err
		}
	}
}

func (j *redisJSON) texts(ctx context.Context, user string) ([]string, error) {
	data, err := j.client.Get(ctx, j.key(user)).Bytes()
	if err != nil {
		return nil, err
	}
	return documentTexts(data)
}

func (j *redisJSON) close() error { return j.client.Close() }

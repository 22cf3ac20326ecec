package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisRows is rows with two scripts in place of two transactions: one accepts
// a message, takes the lease and reads, the other stores and gives the lease
// back. The messages and the results of each user are in two lists.
type redisRows struct {
	client *redis.Client
	set    string
	answer model
}

func openRedisRows(_ context.Context, s site, answer model) (handler, error) {
	c, err := s.redis()
	if err != nil {
		return nil, err
	}
	return &redisRows{c, s.set, answer}, nil
}

func (r *redisRows) key(kind, user string) string { return r.set + ":" + kind + ":{" + user + "}" }

func (r *redisRows) load(ctx context.Context, user string) ([]entry, error) {
	all, err := r.client.LRange(ctx, r.key("talk", user), 0, -1).Result()
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

// redisArgs returns what is appended for a message: two entries and a result.
func redisArgs(entries []entry, m message, reply string) ([]any, error) {
	asked, err := json.Marshal(entry{m.ID, "user", m.Text})
	if err != nil {
		return nil, err
	}
	answered, err := json.Marshal(entry{m.ID, "assistant", reply})
	if err != nil {
		return nil, err
	}
	body, err := newResult(int64(len(entries)), reply)
	return []any{string(asked), string(answered), body}, err
}

func (r *redisRows) texts(ctx context.Context, user string) (texts []string, err error) {
	entries, err := r.load(ctx, user)
	for _, e := range entries {
		if e.Role == "user" {
			texts = append(texts, e.Text)
		}
	}
	return texts, err
}

func (r *redisRows) close() error { return r.client.Close() }

// takeScript returns the reply to a message that is handled. Otherwise it sees to
// it that the message is in the inbox, takes the lease, and returns its epoch,
// the first message of the inbox and the conversation.
var (
	takeScript = redis.NewScript(`
local reply = redis.call('HGET', KEYS[2], ARGV[1])
if reply and reply ~= '' then return {reply} end
if not reply then
  redis.call('RPUSH', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[2], ARGV[1], '')
end
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

func (r *redisRows) handle(ctx context.Context, m message) (string, error) {
	body, err := json.Marshal(entry{m.ID, "user", m.Text})
	if err != nil {
		return "", err
	}
	for {
		now := time.Now()
		got, err := takeScript.Run(ctx, r.client, r.keys(m.User), m.ID, string(body), now.UnixMilli(), now.Add(leaseTime).UnixMilli()).Slice()
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
			first, reply, err := r.work(ctx, m.User, got)
			if err != nil || first == m.ID {
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
	stored, err := finishScript.Run(ctx, r.client, r.keys(user), append([]any{got[1], m.ID, reply}, args...)...).Int()
	if stored == 0 {
		m.ID = "" // fenced: the message is handled by another holder
	}
	return m.ID, reply, err
}

package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// script is Lua that the server runs at once, undisturbed by other commands.
type script struct{ source, hash string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source: source, hash: hex.EncodeToString(sum[:])}
}

// writeScript makes all writes or none. Each is four arguments: the key, the
// condition ("any", "absent" or "=" and a revision), the new revision, which is empty
// for a delete, and the value. It returns 0, or the number of the first write whose
// condition does not hold.
//
// Redis does not undo what a script has done before an error. So everything that can
// fail is tried by reading first, and a key is in the index before its value is there
// and after it is gone: a key in the index without a value is nothing.
var writeScript = newScript(`
redis.call('ZCARD', KEYS[2])
for i = 1, #ARGV, 4 do
  local cond = ARGV[i + 1]
  local found = redis.call('HGET', KEYS[1], 'r' .. ARGV[i])
  if not (cond == 'any' or (cond == 'absent' and not found) or (found and cond == '=' .. found)) then
    return (i + 3) / 4
  end
end
for i = 1, #ARGV, 4 do
  local key, revision = ARGV[i], ARGV[i + 2]
  if revision ~= '' then
    redis.call('ZADD', KEYS[2], 0, key)
    redis.call('HSET', KEYS[1], 'r' .. key, revision, 'v' .. key, ARGV[i + 3])
  else
    redis.call('HDEL', KEYS[1], 'r' .. key, 'v' .. key)
    redis.call('ZREM', KEYS[2], key)
  end
end
return 0
`)

// pageScript returns the keys of a range, at most ARGV[3] of them, and how long their
// values are.
var pageScript = newScript(`
local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local lengths = {}
for i, key in ipairs(keys) do
  lengths[i] = redis.call('HSTRLEN', KEYS[1], 'v' .. key)
end
return {keys, lengths}
`)

// once is a command that the client sends only once. By itself it sends a command
// again when it got no answer; a write that was made then meets itself, and a
// conflict is reported for what has happened.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run runs a script.
func (s *Store) run(ctx context.Context, script script, args []any) (any, error) {
	send := func(name, text string) (any, error) {
		command := once{redis.NewCmd(ctx, append([]any{name, text, 2, s.entries, s.keys}, args...)...)}
		if err := s.process(ctx, command); err != nil {
			return nil, err
		}
		return command.Result()
	}
	reply, err := send("evalsha", script.hash)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = send("eval", script.source)
	}
	return reply, err
}

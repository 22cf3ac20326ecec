package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/redis/go-redis/v9"
)

// script is a Lua script. The server executes it atomically.
type script struct{ source, hash string }

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source: source, hash: hex.EncodeToString(sum[:])}
}

// sentinelScript returns the sentinel, which is ARGV[1] if there was none.
var sentinelScript = newScript(`
redis.call('HSETNX', KEYS[1], 's', ARGV[1])
return redis.call('HGET', KEYS[1], 's')
`)

// checkSentinel begins the scripts of a store. They return -1 if the sentinel is
// not ARGV[1], or the index of the keys is gone.
const checkSentinel = `
if redis.call('HGET', KEYS[1], 's') ~= ARGV[1] then
  return -1
end
if redis.call('HLEN', KEYS[1]) > 1 and redis.call('EXISTS', KEYS[2]) == 0 then
  return -1
end
`

// lost is what scripts return for data that is lost.
const lost = int64(-1)

// writeScript makes all writes or none. A write is four arguments: the key, the
// condition ("any", "absent" or "=" and a revision), the new revision, which is
// empty for a delete, and the value. The script returns 0, or the number of the
// first write whose condition does not hold.
//
// Redis does not roll a script back after an error. The script therefore tries
// first whether all reads succeed. It adds a key to the index before it writes
// the value, and removes the key after it has removed the value: readers ignore
// a key in the index that has no value.
var writeScript = newScript(checkSentinel + `
redis.call('ZCARD', KEYS[2])
for i = 2, #ARGV, 4 do
  local cond = ARGV[i + 1]
  local found = redis.call('HGET', KEYS[1], 'r' .. ARGV[i])
  if not (cond == 'any' or (cond == 'absent' and not found) or (found and cond == '=' .. found)) then
    return (i + 2) / 4
  end
end
for i = 2, #ARGV, 4 do
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

// pageScript returns at most ARGV[4] keys of a range, and the sizes of their
// values.
var pageScript = newScript(checkSentinel + `
local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local lengths = {}
for i, key in ipairs(keys) do
  lengths[i] = redis.call('HSTRLEN', KEYS[1], 'v' .. key)
end
return {keys, lengths}
`)

// once is a command that the client sends only once. By default, the client
// resends a command that got no reply. A write that was made would then
// conflict with itself and be reported as not made.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// runScript runs a script on the entries, with the sentinel as its first
// argument.
func (s *Store) runScript(ctx context.Context, script script, args ...any) (any, error) {
	reply, err := s.runScriptOn(ctx, script, []any{s.entries, s.keys}, slices.Concat([]any{s.sentinel}, args))
	if err == nil && reply == lost {
		err = errLost
	}
	return reply, err
}

// runScriptOn runs a script that uses some Redis keys.
func (s *Store) runScriptOn(ctx context.Context, script script, keys, args []any) (any, error) {
	send := func(name, text string) (any, error) {
		command := once{redis.NewCmd(ctx, slices.Concat([]any{name, text, len(keys)}, keys, args)...)}
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

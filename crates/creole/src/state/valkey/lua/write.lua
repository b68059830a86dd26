-- ARGV: time, maximum bytes, maximum entries, condition, value, time to live, cost.
local version, expires = live_version(key)
if not matches(ARGV[4], version) then return {0} end

local before = redis.call('HGET', sizes, key)
if not before and redis.call('ZCARD', ages) >= tonumber(ARGV[3]) then
  return {-1, 'entries', expired_keys(1024)}
end
local growth = tonumber(ARGV[7]) - tonumber(before or 0)
if growth > 0 and used_bytes() + growth > tonumber(ARGV[2]) then
  return {-1, 'bytes', expired_keys(1024)}
end

local previous, remaining = false, ''
if version then
  previous = redis.call('HGET', key, 'v')
  if expires < NEVER then remaining = whole(expires - now) end
end
local number = whole(math.max(micros, tonumber(redis.call('HGET', counts, 'n') or 0) + 1))
local at = expiry(ARGV[6])
redis.call('HSET', key, 'v', ARGV[5], 'n', number, 'x', whole(at))
redis.call('HSET', counts, 'n', number)
redis.call('HSET', sizes, key, ARGV[7])
redis.call('ZADD', ages, whole(at), key)
add_bytes(growth)
expire(key, at)
if ARGV[8] == '' then previous = false end
return {1, number, expired_keys(8), previous, remaining}

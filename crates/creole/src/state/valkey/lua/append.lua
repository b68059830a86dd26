-- ARGV: time, maximum bytes, maximum logs, entry, time to live, entries to keep, cost.
local known = redis.call('HGET', last, key)
local newest = tonumber(known or 0)
local stored = tonumber(redis.call('HGET', held, key) or 0)
local first, first_live = first_numbers(key, newest)
local number, keep, cost = newest + 1, tonumber(ARGV[6]), tonumber(ARGV[7])
if keep == 0 then cost = 0 end

-- The first entry that stays, what its predecessors cost, and the cost of all before the new entry.
local from = math.max(first_live, number - keep + 1)
local freed, before = 0, 0
if from > newest then
  freed = stored
else
  local start = entry_at(key, first).cost
  freed = entry_at(key, from).cost - start
  before = start + stored
end

if used_bytes() - freed + cost > tonumber(ARGV[2]) then
  return {-1, 'bytes', expired_keys(1024)}
end
if not known and redis.call('ZCARD', live) + redis.call('ZCARD', gone) >= tonumber(ARGV[3]) then
  local oldest = redis.call('ZRANGE', gone, 0, 0)[1]
  if not oldest then return {-1, 'logs', expired_keys(1024)} end
  redis.call('ZREM', gone, oldest)
  redis.call('HDEL', last, oldest)
end

if from > newest then
  redis.call('UNLINK', key)
elseif from > first then
  redis.call('XTRIM', key, 'MINID', whole(from) .. '-0')
end
local age = redis.call('ZSCORE', live, key) or redis.call('ZSCORE', gone, key) or 0
local at = math.max(expiry(ARGV[5]), tonumber(age))
if keep > 0 then
  redis.call('XADD', key, whole(number) .. '-0', 'x', whole(at), 'c', whole(before), 'v', ARGV[4])
  expire(key, at)
end
redis.call('HSET', last, key, whole(number))
redis.call('HSET', held, key, whole(stored - freed + cost))
redis.call('ZREM', gone, key)
redis.call('ZADD', live, whole(at), key)
add_bytes(cost - freed)
return {1, whole(number), expired_keys(8)}

-- ARGV: time, condition, time to live.
local version = live_version(key)
if not version or not matches(ARGV[2], version) then return 0 end
local at = expiry(ARGV[3])
redis.call('HSET', key, 'x', whole(at))
redis.call('ZADD', ages, whole(at), key)
expire(key, at)
return 1

-- ARGV: time.
local age = redis.call('ZSCORE', live, key) or redis.call('ZSCORE', gone, key)
if not age then return 0 end
clear_log(key, age)
redis.call('ZREM', gone, key)
redis.call('HDEL', last, key)
return tonumber(age) > now and 1 or 0

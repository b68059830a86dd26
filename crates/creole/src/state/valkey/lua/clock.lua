-- The time: of the store, or given in microseconds by a test.
local micros = tonumber(ARGV[1])
local is_given = micros ~= nil
if not is_given then
  local time = redis.call('TIME')
  micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local now = math.floor(micros / 1000)
-- The expiry of what does not expire. Larger numbers lose digits, and PEXPIREAT refuses them.
local NEVER = 9e15

local function whole(number)
  return string.format('%.0f', number)
end

local function expiry(ttl)
  return ttl == '' and NEVER or math.min(now + tonumber(ttl), NEVER)
end

-- Lets the store delete a key by itself. It must not where a test decides the time.
local function expire(key, at)
  if at < NEVER and not is_given then
    redis.call('PEXPIREAT', key, whole(at))
  else
    redis.call('PERSIST', key)
  end
end

-- What is counted, and the deletion of expired data, whose keys follow the first eight.
local counts, ages, sizes, live, gone, last, held = unpack(KEYS, 1, 7)
local key = KEYS[8]

local function add_bytes(bytes)
  if bytes ~= 0 then redis.call('HINCRBY', counts, 'bytes', whole(bytes)) end
end

local function used_bytes()
  return tonumber(redis.call('HGET', counts, 'bytes') or 0)
end

-- Deletes the entries of a log. Its last number stays, so that a late reader notices.
local function clear_log(log, age)
  add_bytes(-tonumber(redis.call('HGET', held, log) or 0))
  redis.call('HDEL', held, log)
  redis.call('UNLINK', log)
  redis.call('ZREM', live, log)
  redis.call('ZADD', gone, age, log)
end

local function delete_entry(entry)
  add_bytes(-tonumber(redis.call('HGET', sizes, entry) or 0))
  redis.call('HDEL', sizes, entry)
  redis.call('ZREM', ages, entry)
  redis.call('UNLINK', entry)
end

for index = 9, #KEYS do
  local age = redis.call('ZSCORE', ages, KEYS[index])
  if age and tonumber(age) <= now then delete_entry(KEYS[index]) end
  age = redis.call('ZSCORE', live, KEYS[index])
  if age and tonumber(age) <= now then clear_log(KEYS[index], age) end
end

-- The keys of expired data, which the next change names and deletes.
local function expired_keys(max)
  local found = redis.call('ZRANGEBYSCORE', ages, '-inf', whole(now), 'LIMIT', 0, max)
  local logs = redis.call('ZRANGEBYSCORE', live, '-inf', whole(now), 'LIMIT', 0, max)
  for _, log in ipairs(logs) do found[#found + 1] = log end
  return found
end

-- The version of a value, if it has not expired, and whether it satisfies the condition.
local function live_version(entry)
  local found = redis.call('HMGET', entry, 'n', 'x')
  if found[1] and tonumber(found[2]) > now then return found[1], tonumber(found[2]) end
  return nil
end

-- Versions are compared as text, because numbers lose digits.
local function matches(condition, version)
  return condition == '*' or condition == (version or '')
end

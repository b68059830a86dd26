-- A log is a stream whose ids are its numbers, without a gap. Each entry has its expiry `x`, which never decreases, and
-- `c`, the cost of all entries before it.
local function entry_at(log, number)
  local id = whole(number) .. '-0'
  local found = redis.call('XRANGE', log, id, id)[1]
  if not found then return nil end
  return {expires = tonumber(found[2][2]), cost = tonumber(found[2][4])}
end

-- The numbers of the first stored entry and of the first one that has not expired.
local function first_numbers(log, newest)
  local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if not oldest then return newest + 1, newest + 1 end
  local first = tonumber(string.match(oldest[1], '^%d+'))
  if tonumber(oldest[2][2]) > now then return first, first end
  local low, high = first + 1, newest + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = entry_at(log, middle)
    if found and found.expires > now then high = middle else low = middle + 1 end
  end
  return first, low
end

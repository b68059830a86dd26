-- KEYS: last numbers, log. ARGV: time, number to continue after, maximum entries.
local known = redis.call('HGET', KEYS[1], KEYS[2])
local after, max = tonumber(ARGV[2]), tonumber(ARGV[3])
if not known then
  if after == 0 then return {1, {}} end
  return {-1, '0'}
end
local newest = tonumber(known)
local _, first_live = first_numbers(KEYS[2], newest)
if after < first_live - 1 or after > newest then return {-1, whole(first_live - 1)} end
local entries = {}
if max > 0 then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[2], whole(after + 1) .. '-0', '+', 'COUNT', max)) do
    entries[#entries + 1] = entry[2][6]
  end
end
return {1, entries}

local found = redis.call('HMGET', KEYS[1], 'v', 'n', 'x')
if found[2] and tonumber(found[3]) > now then return {found[1], found[2]} end
return {}

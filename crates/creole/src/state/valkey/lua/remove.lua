-- ARGV: time, condition.
local version = live_version(key)
if not version or not matches(ARGV[2], version) then return 0 end
delete_entry(key)
return 1

/**
 * Divides a quota among instances: the parts of others stay theirs until they tell that they hold less, or until their
 * lease ends. The hash has the part of each instance as doubles (demand, granted and held rate, end of its lease), and
 * until when parts may be in use that were lost with an earlier hash. Arguments: instance, limit, demand, held rate, lease
 * and life of an assignment in milliseconds. The division is that of `divide`. Returns the granted rate.
 */
export const QUOTA_SCRIPT = `
local key, instance = KEYS[1], ARGV[1]
local limit, demand, held = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, over = tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local demands, taken, known, unknown = {demand}, 0, false, 0
local fields = redis.call('HGETALL', key)
for index = 1, #fields, 2 do
  local name, value = fields[index], fields[index + 1]
  if name == 'unknown_until' then
    unknown = math.min(tonumber(value), now + over)
  else
    local asked, granted, used, ends = struct.unpack('>dddd', value)
    if ends <= now then
      redis.call('HDEL', key, name)
    elseif name == instance then
      known = true
    else
      demands[#demands + 1] = asked
      taken = taken + math.max(granted, used)
      if ends > now + lease then
        redis.call('HSET', key, name, struct.pack('>dddd', asked, granted, used, now + lease))
      end
    end
  end
end
if held > 0 and not known then unknown = math.max(unknown, now + over) end
local count, sum, least, needs = #demands, 0, limit * 0.01 / #demands, {}
for index = 1, count do
  needs[index] = math.max(demands[index] * 1.05, least)
  sum = sum + needs[index]
end
local need, target = needs[1], 0
if limit <= 0 then
  target = 0
elseif sum <= limit then
  local half = (limit - sum) / 2
  target = need + half * (need / sum + 1 / count)
else
  table.sort(needs)
  local left = limit
  for index = 1, count do
    local rate = math.min(needs[index], left / (count - index + 1))
    if needs[index] == need then target = rate end
    left = left - rate
  end
end
local granted = math.min(target, math.max(0, limit - taken))
if now < unknown then granted = math.min(granted, held) end
redis.call('HSET', key, instance, struct.pack('>dddd', demand, granted, held, now + lease), 'unknown_until', unknown)
redis.call('PEXPIRE', key, lease + over)
return string.format('%.17g', granted)`;

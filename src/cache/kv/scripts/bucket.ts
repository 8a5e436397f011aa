/**
 * `takeFromBucket` of the core, number by number. The state is two doubles: the level, and until when it is refilled.
 * A refusal is not written. Arguments: expiry in seconds, burst, parts of a hit, parts that a tick refills, length of a
 * tick in microseconds, addends.
 */
export const BUCKET_SCRIPT = `
local key, burst, hit = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local refilled, tick = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = redis.call('GET', key)
local level, at = 0, 0
if stored then level, at = struct.unpack('>dd', stored) end
local capacity = burst * hit
local answers, count, changed = {}, 0, false

local function refill()
  local from = at
  if at - now > tick * hit then
    from = now
    changed = level > 0
  end
  local ticks = math.floor((now - from) / tick)
  if ticks < 0 then ticks = 0 end
  level = level - ticks * refilled
  if level < 0 then level = 0 end
  local rest = now - from - ticks * tick
  if level * tick <= rest * refilled then
    level, at = 0, now
  else
    at = from + ticks * tick
  end
end

local function wait(target)
  if burst == 0 or refilled == 0 then return math.ceil(hit * tick / 1000) end
  local parts, us = level - target
  if target == 0 then
    us = math.ceil(parts * tick / refilled)
  else
    us = math.ceil(parts / refilled) * tick
  end
  local ms = math.ceil((at + us - now) / 1000)
  if ms < 0 then return 0 end
  return ms
end

refill()
for arg = 6, #ARGV do
  local hits, granted = tonumber(ARGV[arg]), 1
  if hits < 0 then
    changed = changed or level > 0
    level = level + hits * hit
    refill()
  elseif hits == 0 then
    if level + hit > capacity then granted = 0 end
  elseif level + hits * hit <= capacity then
    level = level + hits * hit
    changed = true
  else
    granted = 0
  end
  local available, retry, free = math.floor((capacity - level) / hit), 0, 0
  if available <= 0 then
    available = 0
    retry = wait(capacity - hit)
  end
  if level > 0 then free = wait(0) end
  answers[count + 1], answers[count + 2], answers[count + 3] = granted, math.ceil(level / hit), available
  answers[count + 4], answers[count + 5] = retry, free
  count = count + 5
end
if changed then redis.call('SET', key, struct.pack('>dd', level, at), 'EX', ARGV[1]) end
return answers`;

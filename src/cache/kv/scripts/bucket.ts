/**
 * `takeFromBucket` of the core, number by number. The state is three doubles: the level, until when it is refilled, and
 * the parts that a tick refills; one of two doubles has the rate of the limit. A refusal is written only if it changes
 * the rate, and with it the expiry. More than a lower burst holds needs a longer expiry than that of the limit.
 * Arguments: expiry in seconds, the limit as doubles (burst, parts of a hit, parts that a tick refills, length of a tick
 * in microseconds), addends. The first round only refills; functions would cost a fifth more.
 */
export const BUCKET_SCRIPT = `
local key, burst, hit, refilled, tick = KEYS[1], struct.unpack('>dddd', ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = redis.call('GET', key)
local level, at, rate = 0, 0, refilled
if stored and #stored == 24 then
  level, at, rate = struct.unpack('>ddd', stored)
elseif stored and #stored == 16 then
  level, at = struct.unpack('>dd', stored)
end
local capacity = burst * hit
local floor, ceil = math.floor, math.ceil
local answers, count, changed, hits, granted = {}, 0, rate ~= refilled
for arg = 2, #ARGV do
  if arg > 2 then
    hits, granted = tonumber(ARGV[arg]), 1
    if hits < 0 then
      changed = changed or level > 0
      level = level + hits * hit
    elseif hits == 0 then
      if level + hit > capacity then granted = 0 end
    elseif level + hits * hit <= capacity then
      level = level + hits * hit
      changed = true
    else
      granted = 0
    end
  end
  if arg == 2 or hits < 0 then
    local from = at
    if level <= 0 or at - now > 1000000 then
      from = now
      changed = changed or level > 0
    end
    local ticks = floor((now - from) / tick)
    if ticks < 0 then ticks = 0 end
    level = level - ticks * rate
    if level < 0 then level = 0 end
    local rest = now - from - ticks * tick
    if level * tick <= rest * math.max(rate, refilled) then
      level, at = 0, now
    else
      at = from + ticks * tick
    end
    rate = refilled
  end
  if arg > 2 then
    local available, retry, free = floor((capacity - level) / hit), 0, 0
    if level > 0 then free = at + ceil(level * tick / refilled) - now end
    if available <= 0 then
      available, retry = 0, free
      if burst ~= 1 then retry = at + ceil((level - capacity + hit) / refilled) * tick - now end
    end
    if burst == 0 or refilled == 0 then
      if available == 0 then retry = hit * tick end
      if level > 0 then free = hit * tick end
    end
    retry, free = math.min(1e15, ceil(retry / 1000)), math.min(1e15, ceil(free / 1000))
    if retry < 0 then retry = 0 end
    if free < 0 then free = 0 end
    answers[count + 1], answers[count + 2], answers[count + 3] = granted, ceil(level / hit), available
    answers[count + 4], answers[count + 5] = retry, free
    count = count + 5
  end
end
if changed then
  local expiry = tonumber(ARGV[1])
  if level > capacity and refilled > 0 then
    expiry = math.min(math.max(expiry, ceil(level * tick / refilled / 1000000)), 3153600000)
  end
  redis.call('SETEX', key, expiry, struct.pack('>ddd', level, at, rate))
end
return answers`;

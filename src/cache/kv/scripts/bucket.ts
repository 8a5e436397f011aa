/**
 * The changes of `takeFromBucket` of the core, number by number; the core computes what to answer. The state is three
 * doubles: the level, until when it is refilled, and the parts that a tick refills; one of two doubles has the rate of the
 * limit. A refusal is written only if it changes the rate, and with it the expiry. More than a lower burst holds needs a
 * longer expiry than that of the limit. The limit is doubles (burst, parts of a hit, parts that a tick refills, length of
 * a tick in microseconds). The first round only refills; functions would cost a fifth more.
 */
export const BUCKET_SCRIPT = `
local function bucket(limit)
  local burst, hit, refilled, tick = struct.unpack('>dddd', limit)
  local capacity, floor = burst * hit, math.floor
  return function(key, stored, expiry, args, first, last)
    local level, at, rate = 0, 0, refilled
    if stored and #stored == 24 then
      level, at, rate = struct.unpack('>ddd', stored)
    elseif stored and #stored == 16 then
      level, at = struct.unpack('>dd', stored)
    end
    local changed, hits = rate ~= refilled, 0
    for arg = first - 1, last do
      if arg >= first then
        hits = tonumber(args[arg])
        if hits < 0 and level > 0 or hits > 0 and level + hits * hit <= capacity then
          level = level + hits * hit
          changed = true
        end
      end
      if arg < first or hits < 0 then
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
    end
    if changed then
      stored = struct.pack('>ddd', level, at, rate)
      if level > capacity and refilled > 0 then
        expiry = math.min(math.max(tonumber(expiry), math.ceil(level * tick / refilled / 1000000)), 3153600000)
      end
      redis.call('SETEX', key, expiry, stored)
    end
    return floor((capacity - level) / hit), stored
  end
end`;

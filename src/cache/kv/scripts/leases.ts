import { MAX_PLACES_OF_HOLDER } from "../../../ratelimit/algorithms/leases.ts";

/**
 * `Leases.take` of the core, number by number. The sorted set has a member for each place, with the end of its lease in
 * microseconds as score. The name of a member is its number among the places of its holder, of which the newest is 1, and
 * the holder: they end from the highest number on. A call removes up to 1,000 places whose lease is over, and does not
 * count the others. Of a name that gets no place, two members are looked up, whatever it has. Arguments: expiry in seconds, the limit as doubles (limit, lease in microseconds), and for each
 * addend its holder.
 */
export const LEASES_SCRIPT = `
local key, limit, lease = KEYS[1], struct.unpack('>dd', ARGV[2])
local most, batch = ${MAX_PLACES_OF_HOLDER}, 1000
local time = redis.call('TIME')
local start = time[1] * 1000000 + time[2]
local now = start
local function text(number) return string.format('%.0f', number) end
local function last()
  local top = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  return top[2] and tonumber(top[2])
end
local size = redis.call('ZCARD', key)
local newest = size > 0 and last()
local ahead = newest and newest - lease - now or 0
if ahead > 0 and ahead <= 1000000 then
  now = now + ahead
elseif ahead > 0 then
  local future = redis.call('ZCOUNT', key, '(' .. text(now + lease), '+inf')
  local first = size - future
  local moved = redis.call('ZRANGE', key, first, first + math.min(future, batch) - 1)
  for i = 1, #moved do redis.call('ZADD', key, text(now + lease), moved[i]) end
  newest = last()
end
local used = size
if size > 0 then
  local over = redis.call('ZCOUNT', key, '-inf', text(now))
  used = size - over
  if over > 0 then redis.call('ZREMRANGEBYRANK', key, 0, math.min(over, batch) - 1) end
end
local answers, count, acquired = {}, 0, false
for arg = 3, #ARGV, 2 do
  local hits, holder, granted = tonumber(ARGV[arg]), ARGV[arg + 1], 1
  local held, ends = 0, {}
  now = used > 0 and math.max(start, newest - lease) or start
  while used > 0 and held < most do
    local stored = redis.call('ZSCORE', key, (held + 1) .. ':' .. holder)
    if not stored or tonumber(stored) <= now then break end
    held = held + 1
    ends[held] = tonumber(stored)
    if held == 1 and hits >= 0 then
      local oldest = redis.call('ZSCORE', key, most .. ':' .. holder)
      if oldest and tonumber(oldest) > now then held, ends[most] = most, tonumber(oldest)
      elseif used >= limit then break end
    end
  end
  if hits < 0 then
    local left = math.max(0, held + hits)
    if left < held then
      local names, scores = {}, {}
      for i = left + 1, held do names[#names + 1] = i .. ':' .. holder end
      redis.call('ZREM', key, unpack(names))
      for i = 1, left do
        ends[i] = ends[i + held - left]
        scores[2 * i - 1], scores[2 * i] = text(ends[i]), i .. ':' .. holder
      end
      if left > 0 then redis.call('ZADD', key, unpack(scores)) end
      used = used - held + left
      held = left
      newest = used > 0 and last()
    end
  elseif math.max(1, hits) > math.min(limit - used, most - held) then
    granted = 0
  elseif hits > 0 then
    local scores = {}
    for i = held, 1, -1 do ends[i + hits] = ends[i] end
    newest = now + lease
    for i = 1, hits do ends[i] = newest end
    held = held + hits
    for i = 1, held do scores[2 * i - 1], scores[2 * i] = text(ends[i]), i .. ':' .. holder end
    redis.call('ZADD', key, unpack(scores))
    used = used + hits
    acquired = true
  end
  local available, retry, free = math.min(limit - used, most - held), 0, 0
  if available <= 0 then
    available = 0
    local frees = now
    if limit == 0 then
      frees = now + lease
    else
      if held >= most then frees = ends[held] end
      if used >= limit then
        local rank = math.max(limit, used - batch)
        local place = redis.call('ZRANGE', key, -rank, -rank, 'WITHSCORES')
        frees = math.max(frees, tonumber(place[2]))
      end
    end
    retry = math.ceil((frees - now) / 1000)
  end
  if used > 0 then free = math.ceil((newest - now) / 1000) end
  answers[count + 1], answers[count + 2], answers[count + 3] = granted, used, available
  answers[count + 4], answers[count + 5] = retry, free
  count = count + 5
end
if acquired then redis.call('EXPIRE', key, ARGV[1]) end
return answers`;

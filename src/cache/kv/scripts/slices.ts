/**
 * `takeFromSlices` of the core, number by number. The state is doubles: the index of the newest slice, the sum, and the
 * hits of 17 slices. A refusal is not written. Arguments: expiry in seconds, the limit as doubles (limit, length of a
 * slice in microseconds), addends.
 */
export const SLICES_SCRIPT = `
local state = '>ddddddddddddddddddd'
local key, limit, slice = KEYS[1], struct.unpack('>dd', ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local current = math.floor(now / slice)
local index = current
local stored = redis.call('GET', key)
local s, used
local answers, count, changed = {}, 0, false
if not stored then
  s, used = {index, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0
else
  s = {struct.unpack(state, stored)}
  used = s[2]
  local head = s[1]
  if index < head then
    if used > 0 and head * slice - now <= 1000000 then
      index = head
    else
      for slot = 3, 19 do s[slot] = 0 end
      s[3 + index % 17] = used
      changed = used > 0
    end
  elseif index - head > 16 then
    for slot = 3, 19 do s[slot] = 0 end
    used = 0
  elseif used > 0 then
    for passed = head + 1, index do
      local slot = 3 + passed % 17
      used = used - s[slot]
      s[slot] = 0
    end
  end
end
for arg = 3, #ARGV do
  local hits, granted = tonumber(ARGV[arg]), 1
  if hits < 0 then
    local left = -hits
    if left > used then left = used end
    changed = changed or left > 0
    used = used - left
    for i = index - 16, index do
      if left == 0 then break end
      local slot = 3 + i % 17
      local given = s[slot]
      if given > left then given = left end
      s[slot] = s[slot] - given
      left = left - given
    end
    if used == 0 then index = current end
  elseif hits == 0 then
    if used >= limit then granted = 0 end
  elseif used + hits <= limit then
    local slot = 3 + index % 17
    s[slot] = s[slot] + hits
    used = used + hits
    changed = true
  else
    granted = 0
  end
  local available, retry, free = limit - used, 0, 0
  if available <= 0 then
    available = 0
    if limit == 0 then
      retry = math.ceil(17 * slice / 1000)
    else
      local left, i = used, index - 16
      while i < index do
        left = left - s[3 + i % 17]
        if left < limit then break end
        i = i + 1
      end
      retry = math.ceil(((i + 17) * slice - now) / 1000)
    end
  end
  if used > 0 then
    local i = index
    while s[3 + i % 17] == 0 and i > index - 16 do i = i - 1 end
    free = math.ceil(((i + 17) * slice - now) / 1000)
  end
  answers[count + 1], answers[count + 2], answers[count + 3] = granted, used, available
  answers[count + 4], answers[count + 5] = retry, free
  count = count + 5
end
if changed then
  s[1], s[2] = index, used
  redis.call('SETEX', key, ARGV[1], struct.pack(state, unpack(s)))
end
return answers`;

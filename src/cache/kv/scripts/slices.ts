/**
 * The changes of `takeFromSlices` of the core, number by number; the core computes what to answer. The state is doubles:
 * the index of the newest slice, the sum, and the hits of 17 slices. A refusal is not written. The limit is doubles (limit,
 * length of a slice in microseconds).
 */
export const SLICES_SCRIPT = `
local function slices(limit)
  local state, limit, slice = '>ddddddddddddddddddd', struct.unpack('>dd', limit)
  local current = math.floor(now / slice)
  return function(key, stored, expiry, args, first, last)
    local index, used, changed, s = current, 0, false
    if not stored then
      s = {index, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
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
    for arg = first, last do
      local hits = tonumber(args[arg])
      if hits < 0 then
        local left = math.min(-hits, used)
        changed = changed or left > 0
        used = used - left
        for i = index - 16, index do
          if left == 0 then break end
          local slot = 3 + i % 17
          local given = math.min(left, s[slot])
          s[slot] = s[slot] - given
          left = left - given
        end
        if used == 0 then index = current end
      elseif hits > 0 and used + hits <= limit then
        local slot = 3 + index % 17
        s[slot] = s[slot] + hits
        used = used + hits
        changed = true
      end
    end
    if changed then
      s[1], s[2] = index, used
      stored = struct.pack(state, unpack(s))
      redis.call('SETEX', key, expiry, stored)
    end
    return limit - used, stored
  end
end`;

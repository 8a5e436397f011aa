import { BUCKET_SCRIPT } from "./bucket.ts";
import { SLICES_SCRIPT } from "./slices.ts";

/**
 * Takes hits in several windows: in all of them or in none. It looks at all of them first, with the functions of their
 * algorithms, which then take what passes; a refusal is that of the same hits until some are taken. A fixed window is a
 * plain number, as for INCRBY. Arguments: for each key its expiry in seconds and its limit, after the first letter of its
 * algorithm; addends. Returns the time and what was stored for each key.
 */
export const JOINT_SCRIPT = `${SLICES_SCRIPT}${BUCKET_SCRIPT}
local function window(limit)
  return function(key, stored, expiry, args)
    local used, hits = tonumber(stored or '0'), tonumber(args[1])
    if hits < 0 then
      if -hits > used then hits = -used end
      if hits < 0 then redis.call('DECRBY', key, string.format('%.0f', -hits)) end
    elseif hits > 0 then
      if used == 0 then redis.call('SETEX', key, expiry, args[1]) else redis.call('INCRBY', key, args[1]) end
    end
    return limit - used - hits, string.format('%.0f', used + hits)
  end
end
local functions = {s = slices, b = bucket, w = window}
local states, takes, reply = {}, {}, {now}
for index = 1, #KEYS do
  local limit = ARGV[2 * index]
  takes[index] = functions[limit:sub(1, 1)](limit:sub(2))
  states[index] = redis.call('GET', KEYS[index])
  reply[index + 1] = states[index]
end
local function run(index, hits)
  local available
  available, states[index] = takes[index](KEYS[index], states[index], ARGV[2 * index - 1], {hits}, 1, 1)
  return available
end
local refused = {}
for arg = 2 * #KEYS + 1, #ARGV do
  local hits, passes = tonumber(ARGV[arg]), not refused[ARGV[arg]]
  if passes and hits >= 0 then
    for index = 1, #KEYS do
      if math.max(1, hits) > run(index, '0') then passes = false end
    end
  end
  if not passes then
    refused[ARGV[arg]] = true
  elseif hits ~= 0 then
    refused = {}
    for index = 1, #KEYS do run(index, ARGV[arg]) end
  end
end
return reply`;

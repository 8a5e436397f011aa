import { BUCKET_SCRIPT } from "./bucket.ts";
import { SLICES_SCRIPT } from "./slices.ts";

/**
 * Takes hits in several windows: in all of them or in none. It looks at all of them first, with the scripts of their
 * algorithms, which then take what passes; a refusal is that of the same hits until some are taken. A fixed window is a plain number, as for INCRBY, and has no times.
 * Arguments: for each key its expiry in seconds and its limit, after the first letter of its algorithm; addends.
 */
export const JOINT_SCRIPT = `
local function slices(KEYS, ARGV)
${SLICES_SCRIPT}
end
local function bucket(KEYS, ARGV)
${BUCKET_SCRIPT}
end
local function window(KEYS, ARGV)
  local key, limit, hits = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
  local used, granted = tonumber(redis.call('GET', key) or '0'), 1
  if hits < 0 then
    if -hits > used then hits = -used end
    if hits < 0 then used = redis.call('DECRBY', key, string.format('%.0f', -hits)) end
  elseif used + math.max(1, hits) > limit then
    granted = 0
  elseif hits > 0 then
    if used == 0 then redis.call('SETEX', key, ARGV[1], ARGV[3]) else redis.call('INCRBY', key, ARGV[3]) end
    used = used + hits
  end
  return {granted, used, math.max(0, limit - used), 0, 0}
end
local takes = {s = slices, b = bucket, w = window}
local count = #KEYS
local function run(index, hits)
  local limit = ARGV[2 * index]
  return takes[limit:sub(1, 1)]({KEYS[index]}, {ARGV[2 * index - 1], limit:sub(2), hits})
end
local answers, known = {}, {}
for arg = 2 * count + 1, #ARGV do
  local hits, passes, outcomes = tonumber(ARGV[arg]), true, known[ARGV[arg]]
  if outcomes then
    passes = false
  elseif hits >= 0 then
    outcomes = {}
    for index = 1, count do
      outcomes[index] = run(index, '0')
      if math.max(1, hits) > outcomes[index][3] then
        outcomes[index][1], passes = 0, false
      else
        outcomes[index][1] = 1
      end
    end
  end
  if hits ~= 0 and passes then
    outcomes, known = {}, {}
    for index = 1, count do outcomes[index] = run(index, ARGV[arg]) end
  end
  if not passes then known[ARGV[arg]] = outcomes end
  for index = 1, count do
    for number = 1, 5 do answers[#answers + 1] = outcomes[index][number] end
  end
end
return answers`;

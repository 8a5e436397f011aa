import { assertEquals } from "#assert";
import {
  limitBytes,
  parseTaken,
  SCRIPT_SOURCES,
  type ScriptCall,
} from "../../../src/cache/kv/scripts/script.ts";
import { slotOf } from "../../../src/cache/kv/cluster/slots.ts";
import { bucketLimit, MAX_BURST } from "../../../src/ratelimit/algorithms/bucket.ts";
import {
  type ConditionalLimit,
  type StateLimit,
  stateSize,
  take,
} from "../../../src/ratelimit/algorithms/conditional_limit.ts";
import { type LeaseLimit, Leases } from "../../../src/ratelimit/algorithms/leases.ts";
import { sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { type RedisCommand, redisCommands, redisReplies } from "../../harness/redis_command.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { testRedis } from "../../harness/kv_bed.ts";
import { needs, toolAvailable } from "../../harness/tools.ts";

const SEQUENCES = 400;
const CALLS = 40;
const START_US = 1_700_000_000_000_000;
const HOUR_S = 3_600;

/** Scripts whose time is in the last two arguments. */
const TIMED = {
  slices: withGivenTime(SCRIPT_SOURCES.slices),
  bucket: withGivenTime(SCRIPT_SOURCES.bucket),
  leases: withGivenTime(SCRIPT_SOURCES.leases).replace("#ARGV, 2 do", "#ARGV - 2, 2 do"),
};

function withGivenTime(script: string): string {
  const [before = "", after, ...others] = script.split("redis.call('TIME')");
  assertEquals([typeof after, others], ["string", []]);
  return `${before}{ARGV[#ARGV - 1], ARGV[#ARGV]}${after}`;
}

/** One take of slices or of a bucket at this time: the command of its script. */
function takeCommand(
  limit: StateLimit,
  { key, expiry = HOUR_S, addends, time }: {
    readonly key: string;
    readonly expiry?: number;
    readonly addends: readonly number[];
    readonly time: readonly number[];
  },
): RedisCommand {
  const args = [expiry, addends.length, ...addends, ...time].map(String);
  return ["EVAL", TIMED[limit.kind], "1", key, limitBytes(limit), ...args];
}

/** The outcomes of one take. */
function outcomesOf(
  reply: unknown,
  limit: ConditionalLimit,
  addends: readonly number[],
): Taken[] | undefined {
  const call: ScriptCall = { limit, takes: [{ keys: [""], expiresInSeconds: [0], addends, holders: [] }] };
  return parseTaken(reply, call)?.[0] ?? undefined;
}

type Pick = (below: number) => number;

/** A random sequence of calls for the leases of one key, by the clock of a cache that is set back at times. */
function leaseSequence(seed: number): ReturnType<typeof sequence> {
  const random = seededRandom(seed);
  const pick: Pick = (below) => Math.floor(random() * below);
  const leaseUs = [1_000_000, 60_000_000, 86_400_000_000][pick(3)] ?? 1;
  let limit: LeaseLimit = { kind: "leases", limit: [3, 20, 300][pick(3)] ?? 1, leaseUs };
  const key = `{leases ${seed}}_${crypto.randomUUID()}`;
  const leases = new Leases();
  let nowUs = START_US + pick(1_000_000);
  const calls = Array.from({ length: CALLS }, (_, index): TimedCall => {
    if (pick(8) === 0) limit = { ...limit, limit: [0, 2, 20, 300][pick(4)] ?? 0 };
    const isBack = pick(15) === 0;
    const factor = (isBack ? [0.001, 1, 40] : [0, 0.1, 0.3, 1])[pick(isBack ? 3 : 4)] ?? 1;
    nowUs += pick(Math.ceil(leaseUs * factor) + 1) * (isBack ? -1 : 1);
    nowUs = Math.max(START_US / 2, nowUs);
    const asks = Array.from({ length: 1 + pick(4) }, () => {
      const addend = [1, 1, 0, -1, -1 - pick(9), 1 + pick(3), pick(120)][pick(7)] ?? 1;
      return { addend, holder: `${pick(3)}:` };
    });
    const expected = asks.map(({ addend, holder }) => leases.take(limit, nowUs, holder, addend));
    const time = [Math.floor(nowUs / 1_000_000), nowUs % 1_000_000];
    const args = [...asks.flatMap(({ addend, holder }) => [addend, holder]), ...time].map(String);
    return {
      command: ["EVAL", TIMED.leases, "1", key, `${HOUR_S}`, limitBytes(limit), ...args],
      limit,
      expected,
      addends: asks.map(({ addend }) => addend),
      text: `leases of seed ${seed}, call ${index}: ${JSON.stringify(limit)} ${args.join(" ")}`,
    };
  });
  return { key, calls };
}

function randomLimit(pick: Pick): StateLimit {
  const unitSeconds = [1, 7, 60, 3_600, 86_400, 31_536_000][pick(6)] ?? 1;
  const size = [5, 50, 1_000, 2 ** 32 - 1][pick(4)] ?? 5;
  if (pick(2) === 0) return sliceLimit(pick(size + 1), unitSeconds * 1_000);
  return bucketLimit({
    burst: pick(Math.min(size, MAX_BURST) + 1),
    hitsPerUnit: pick(size + 1),
    unitSeconds,
  });
}

/** The limit with another rate and burst, as a reload gives it: the key stays, and so does the unit. */
function reloaded(limit: StateLimit, pick: Pick): StateLimit {
  const size = [5, 50, 1_000, 2 ** 32 - 1][pick(4)] ?? 5;
  if (limit.kind === "slices") return { ...limit, limit: pick(size + 1) };
  return { ...limit, burst: pick(Math.min(size, MAX_BURST) + 1), partsPerTick: pick(size + 1) };
}

/** A call at a time, and what the core answers. */
interface TimedCall {
  readonly command: RedisCommand;
  readonly limit: ConditionalLimit;
  readonly expected: Taken[];
  readonly addends: readonly number[];
  readonly text: string;
}

/** A random sequence of calls for one key, whose core begins with an unknown counter. */
function sequence(
  seed: number,
): { readonly key: string; readonly calls: TimedCall[] } {
  const random = seededRandom(seed);
  const pick: Pick = (below) => Math.floor(random() * below);
  let limit = randomLimit(pick);
  const sliceUs = limit.kind === "slices"
    ? limit.sliceUs
    : Math.ceil(limit.tickUs * limit.partsPerHit / Math.max(1, limit.partsPerTick));
  const key = `{${seed}}_${crypto.randomUUID()}`;
  const state = new Float64Array(stateSize(limit.kind));
  let nowUs = START_US + pick(1_000_000);
  let hasTaken = false;
  const calls = Array.from({ length: CALLS }, (_, index): TimedCall => {
    if (pick(8) === 0) limit = reloaded(limit, pick);
    const most = limit.kind === "slices" ? limit.limit : limit.burst;
    // A refusal is not written, so that a clock set back is the same to both only after hits that were taken.
    const isBack = hasTaken && pick(12) === 0;
    const factor = (isBack ? [1, 20, 2_000][pick(3)] : [0, 1, 3, 40][pick(4)]) ?? 1;
    nowUs += pick(sliceUs * factor + 1) * (isBack ? -1 : 1);
    nowUs = Math.max(START_US / 2, nowUs);
    const addends = Array.from({ length: 1 + pick(4) }, () => {
      return [1, 1, 0, -1 - pick(3), 1 + pick(3), pick(most + 2)][pick(6)] ?? 1;
    });
    const expected = addends.map((addend) => take(state, 0, limit, nowUs, addend));
    hasTaken = addends.some((addend, at) => addend > 0 && expected[at]?.granted === true);
    const time = [Math.floor(nowUs / 1_000_000), nowUs % 1_000_000];
    return {
      command: takeCommand(limit, { key, addends, time }),
      limit,
      expected,
      addends,
      text: `seed ${seed}, call ${index}: ${JSON.stringify(limit)} ${[...addends, ...time].join(" ")}`,
    };
  });
  return { key, calls };
}

/** Commands whose time is given, with the whole answers of `GET` and `TTL` in between. */
const BUCKET_CASES: readonly {
  readonly name: string;
  /** Microseconds since the start, rate, burst, addend and the expiry of the limit. */
  readonly calls: readonly (readonly [number, number, number, number, number])[];
  readonly granted: readonly number[];
  readonly ttl: number;
}[] = [
  {
    name: "the idle time before a lower rate is refilled at the higher one",
    calls: [[0, 100, 10, 10, 8], [6_100_000, 1, 10, 10, 602]],
    granted: [1, 1],
    ttl: 602,
  },
  {
    name: "a refusal after a lower rate is kept as long as the lower rate needs",
    calls: [[0, 100, 10, 10, 8], [0, 1, 10, 1, 602], [59_000_000, 1, 10, 1, 602], [
      61_000_000,
      1,
      10,
      1,
      602,
    ]],
    granted: [1, 0, 0, 1],
    ttl: 602,
  },
  {
    name: "refusals at a higher rate do not refill at it the time before",
    calls: [[0, 1, 10, 10, 602], [30_000_000, 2, 10, 1, 302], [44_000_000, 2, 10, 1, 302], [
      46_000_000,
      2,
      10,
      1,
      302,
    ]],
    granted: [1, 0, 0, 1],
    ttl: 302,
  },
  {
    name: "more than a lower burst holds is kept until it is refilled",
    calls: [[0, 1, 10, 10, 602], [0, 2, 1, 1, 32]],
    granted: [1, 0],
    ttl: 300,
  },
];

testRedis("kv scripts: a bucket whose rate changes keeps the rate of the time before", async (server) => {
  for (const { name, calls, granted, ttl } of BUCKET_CASES) {
    const key = crypto.randomUUID();
    const limits = calls.map(([, hitsPerUnit, burst]) =>
      bucketLimit({ burst, hitsPerUnit, unitSeconds: 60 })
    );
    const commands = calls.map(([us, , burst, addend, expiry], index) => {
      const time = [START_US / 1_000_000 + Math.floor(us / 1_000_000), us % 1_000_000];
      const limit = limits[index] ?? bucketLimit({ burst, hitsPerUnit: 0, unitSeconds: 60 });
      return takeCommand(limit, { key, expiry, addends: [addend], time });
    });
    const replies = await redisReplies([...commands, ["TTL", key]], { port: server.port });
    const answers = limits.map((limit, index) => {
      const [taken] = outcomesOf(replies[index], limit, [calls[index]?.[3] ?? 0]) ?? [];
      return taken?.granted === true ? 1 : 0;
    });
    assertEquals(answers, granted, name);
    const left = Number(replies.at(-1));
    assertEquals(left > ttl - 60 && left <= ttl + 1, true, `${name}: ${left}`);
  }
});

testRedis("kv scripts: a state without a rate, or of another form, is no error", async (server) => {
  const doubles = (...numbers: number[]) => {
    const view = new DataView(new ArrayBuffer(8 * numbers.length));
    for (const [index, number] of numbers.entries()) view.setFloat64(8 * index, number);
    return new Uint8Array(view.buffer);
  };
  const limit = bucketLimit({ burst: 10, hitsPerUnit: 1, unitSeconds: 60 });
  const states = { old: doubles(9 * limit.partsPerHit, START_US), other: new TextEncoder().encode("text") };
  const answers: Record<string, unknown> = {};
  for (const [key, state] of Object.entries(states)) {
    const take = takeCommand(limit, { key, addends: [1, 1], time: [START_US / 1_000_000, 0] });
    const [, reply] = await redisReplies([["SET", key, state], take], { port: server.port });
    answers[key] = outcomesOf(reply, limit, [1, 1])?.map(({ granted, used }) => [granted, used]);
  }
  assertEquals(answers, { old: [[true, 10], [false, 10]], other: [[true, 1], [true, 2]] });
});

testRedis(
  "kv scripts: several keys are taken alone in one call; those without a state are left out",
  async (server) => {
    const limit = bucketLimit({ burst: 5, hitsPerUnit: 1, unitSeconds: 60 });
    const time = [START_US / 1_000_000, 0];
    const keys = ["held", "new", "list", "short", "held too"];
    const addends = [[2, 9], [1], [1], [1], [-1, 3]];
    const args = addends.flatMap((own) => [HOUR_S, own.length, ...own]);
    const [, , , , reply, ...types] = await redisReplies([
      takeCommand(limit, { key: "held", addends: [1], time }),
      takeCommand(limit, { key: "held too", addends: [4], time }),
      ["RPUSH", "list", "x"],
      ["SET", "short", "5"],
      ["EVAL", TIMED.bucket, "5", ...keys, limitBytes(limit), ...[...args, ...time].map(String)],
      ...keys.map((key): RedisCommand => ["TYPE", key]),
      ["GET", "short"],
    ], { port: server.port });
    const takes = keys.map((key, index) => {
      return { keys: [key], expiresInSeconds: [HOUR_S], addends: addends[index] ?? [], holders: [] };
    });
    const outcomes = parseTaken(reply, { limit, takes })?.map((taken) => {
      return taken?.map(({ granted, used }) => [granted, used]) ?? "left out";
    });
    assertEquals(outcomes, [
      ...[[[true, 3], [false, 3]], "left out", "left out", "left out", [[true, 3], [false, 3]]],
    ]);
    assertEquals(types, ["string", "none", "list", "string", "string", "5"]);
  },
);

/** Sends the same calls to the scripts of a server, and compares every answer. */
async function compare(portOf: (key: string) => Promise<number>): Promise<void> {
  for (let seed = 1; seed <= SEQUENCES; seed++) {
    await compareOne(sequence(seed), portOf);
    await compareOne(leaseSequence(seed), portOf);
  }
}

async function compareOne(
  { key, calls }: ReturnType<typeof sequence>,
  portOf: (key: string) => Promise<number>,
): Promise<void> {
  const replies = await redisReplies(calls.map(({ command }) => command), { port: await portOf(key) });
  for (const [index, { limit, expected, addends, text }] of calls.entries()) {
    assertEquals(outcomesOf(replies[index], limit, addends), expected, text);
  }
}

for (const program of ["redis-server", "valkey-server"] as const) {
  Deno.test({
    ...needs([program], `kv scripts: those of ${program} answer as the core does, number by number`),
    async fn() {
      await using server = await startRedis({ program });
      await compare(() => Promise.resolve(server.port));
    },
  });
}

Deno.test({
  ...needs(["redis-server"], "kv scripts: those of a cluster answer as the core does"),
  ignore: !toolAvailable("redis-server"),
  async fn() {
    await using cluster = await startRedisCluster();
    await compare(async (key) => cluster.nodes[await cluster.ownerOf(slotOf(key))]?.port ?? 0);
  },
});

testRedis(
  "kv scripts: places that end together are removed in parts, and none of them counts",
  async (server) => {
    const key = crypto.randomUUID();
    const limit = limitBytes({ kind: "leases", limit: 2_500, leaseUs: 1_000_000 });
    const take = (seconds: number, holder: string, addend: number): RedisCommand => {
      const time = [`${START_US / 1_000_000 + seconds}`, "0"];
      return ["EVAL", TIMED.leases, "1", key, "3", limit, `${addend}`, holder, ...time];
    };
    const fill = Array.from({ length: 25 }, (_, index) => take(0, `${index}`, 100));
    const replies = await redisCommands(
      [...fill, take(0, "x", 1), take(1, "x", 0), ["ZCARD", key], take(1, "1", -1), take(1, "1", 3), [
        "ZCARD",
        key,
      ], [
        "TTL",
        key,
      ]],
      { port: server.port },
    );
    const shown = replies.slice(fill.length).map((reply) => String(reply).split("\n").slice(0, 3).join(" "));
    assertEquals(shown.slice(0, -1), ["0 2500 0", "1 0 100", "1500", "1 0 100", "1 3 97", "3"]);
    assertEquals(Number(shown.at(-1)) <= 3, true);
  },
);

Deno.test({
  ...needs(["redis-server"], "kv scripts: a refused hit looks up few places, however many its name has"),
  async fn() {
    await using server = await startRedis();
    const limit = limitBytes({ kind: "leases", limit: 150, leaseUs: 60_000_000 });
    const take = (holder: string, addend: number): RedisCommand => {
      return ["EVAL", SCRIPT_SOURCES.leases, "1", "k", "90", limit, `${addend}`, holder];
    };
    const replies = await redisCommands(
      [take("most", 100), take("most", 0), take("less", 50), ["CONFIG", "RESETSTAT"]],
      { port: server.port },
    );
    assertEquals(replies.slice(0, 3).map((reply) => String(reply).split("\n").slice(0, 3).join(" ")), [
      ...["1 100 0", "0 100 0", "1 150 0"],
    ]);
    const refused = Array.from({ length: 20 }, (_, index) => take(index % 2 === 0 ? "most" : "less", 1));
    const stats = String((await redisCommands([...refused, ["INFO", "commandstats"]], server)).at(-1));
    const lookedUp = Number(/cmdstat_zscore:calls=(\d+)/.exec(stats)?.[1]);
    assertEquals(lookedUp <= 2 * refused.length, true, `${lookedUp} places`);
  },
});

Deno.test({
  ...needs(["redis-server"], "kv scripts: refused hits in several windows that arrive together look once"),
  async fn() {
    await using server = await startRedis();
    const take = (...addends: number[]): RedisCommand => {
      const args = ["90", "w5", "90", "w9", ...addends.map(String)];
      return ["EVAL", SCRIPT_SOURCES.joint, "2", "a", "b", ...args];
    };
    const addends = [4, 2, 2, 1, 2, 0, 0, -3, 2, 2];
    const [first, , refused, stats] = await redisReplies([
      take(...addends),
      ["CONFIG", "RESETSTAT"],
      take(...new Array<number>(100).fill(3)),
      ["INFO", "commandstats"],
    ], server);
    const call = { keys: ["a", "b"], expiresInSeconds: [90, 90], addends, holders: [] };
    const outcomes = parseTaken(first, { limit: { limits: [5, 9] }, takes: [call] })?.[0]?.map((taken) => {
      const windows = taken.windows?.map((one) =>
        typeof one === "number" ? one : `${one.granted} ${one.used}`
      );
      return windows?.join(" ");
    });
    const full = "false 5 true 5";
    assertEquals(outcomes, [
      ...["true 4 true 4", "false 4 true 4", "false 4 true 4", "true 5 true 5", full, full, full],
      ...["true 2 true 2", "true 4 true 4", "false 4 true 4"],
    ]);
    assertEquals(Array.isArray(refused) ? refused.slice(1) : refused, ["4", "4"]);
    assertEquals(/cmdstat_get:calls=(\d+)/.exec(String(stats))?.[1], "2");
  },
});

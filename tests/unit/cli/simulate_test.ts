import { assertEquals, assertMatch } from "#assert";
import { type Ran, ran, ranOver } from "../../harness/administration_fixture.ts";

const OLD = rules(3);
const NEW = rules(2);

function rules(perMinute: number, more = ""): string {
  return `domain: shop
descriptors:
- key: remote_address
  rate_limit: {unit: minute, requests_per_unit: ${perMinute}}
- key: plan
  value: free
  rate_limit: {unit: hour, requests_per_unit: 100}
${more}`;
}

function line(time: string | number, ...descriptors: unknown[]): string {
  return JSON.stringify({ domain: "shop", descriptors, time });
}

function of(key: string, value: string, more: Record<string, unknown> = {}): unknown {
  return { entries: [{ key, value }], ...more };
}

const ADDRESS = of("remote_address", "10.0.0.1");
const FOUR = [1, 2, 3, 4].map((second) => line(`2026-01-31T12:00:0${second}Z`, ADDRESS, of("plan", "free")));

/** Conditions of a run in addition to its lines. */
interface SimulateCase {
  readonly environment?: Readonly<Record<string, string>>;
  readonly old?: string;
  readonly new?: string;
  readonly flags?: string;
  /** They come by standard input; by a file when absent. */
  readonly stdin?: boolean;
}

/** Runs the command over these lines; the folder is `DIR` in what it prints. */
async function simulated(lines: readonly string[], options: SimulateCase = {}): Promise<Ran> {
  const text = lines.map((each) => `${each}\n`).join("");
  const files = {
    ...options.old === undefined ? {} : { "old/shop.yaml": options.old },
    "new/shop.yaml": options.new ?? NEW,
    "requests": text,
  };
  const against = options.old === undefined ? "" : "--against DIR/old";
  const requests = options.stdin === true ? "-" : "DIR/requests";
  return await ranOver(
    files,
    `simulate --config DIR/new ${against} --requests ${requests} ${options.flags ?? ""}`,
    { environment: options.environment ?? {}, stdin: options.stdin === true ? text : "" },
  );
}

/** The summary that `--json` prints last. */
function summaryOf({ stdout }: Ran): Record<string, unknown> {
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
}

const COMPARED = `line 1, 2026-01-31T12:00:01.000Z: OK
  remote_address=10.0.0.1: OK by shop.remote_address (3 per MINUTE), remaining 2 -> OK by shop.remote_address (2 per MINUTE), remaining 1
line 3, 2026-01-31T12:00:03.000Z: OK -> OVER_LIMIT
  remote_address=10.0.0.1: OK by shop.remote_address (3 per MINUTE), remaining 0 -> OVER_LIMIT by shop.remote_address (2 per MINUTE), remaining 0
not shown, by --max-changes: 2 other limit
requests: 4, over limit: 1 -> 2; changed: 1 OK -> OVER_LIMIT, 0 OVER_LIMIT -> OK, 3 other limit
decisions: 8, over limit: 1 -> 2; changed: 1 OK -> OVER_LIMIT, 0 OVER_LIMIT -> OK, 3 other limit
times: 2026-01-31T12:00:01.000Z to 2026-01-31T12:00:04.000Z

rule                 decisions  over limit  over in shadow mode  OK -> OVER_LIMIT  OVER_LIMIT -> OK  other limit
shop.plan_free       4 -> 4     0 -> 0      0 -> 0               0                 0                 0
shop.remote_address  4 -> 4     1 -> 2      0 -> 0               1                 0                 3
`;

Deno.test("weir simulate: what changes against other rules, and at most so many of each kind", async () => {
  const expected = { code: 1, stdout: COMPARED, stderr: "" };
  assertEquals(await simulated(FOUR, { old: OLD, flags: "--max-changes 1" }), expected);
  assertEquals(await simulated(FOUR, { old: OLD, flags: "--max-changes=1", stdin: true }), expected);
});

Deno.test("weir simulate: the same rules change nothing", async () => {
  const { code, stdout, stderr } = await simulated(FOUR, { old: NEW });
  assertEquals([code, stdout.split("\n")[0], stderr], [
    0,
    "requests: 4, over limit: 2 -> 2; changed: 0 OK -> OVER_LIMIT, 0 OVER_LIMIT -> OK, 0 other limit",
    "",
  ]);
});

Deno.test("weir simulate: rules alone show what is over its limit", async () => {
  assertEquals(await simulated(FOUR, { flags: "--max-changes 1" }), {
    code: 0,
    stdout: `line 3, 2026-01-31T12:00:03.000Z: OVER_LIMIT
  remote_address=10.0.0.1: OVER_LIMIT by shop.remote_address (2 per MINUTE), remaining 0
not shown, by --max-changes: 1 OVER_LIMIT
requests: 4, over limit: 2
decisions: 8, over limit: 2
times: 2026-01-31T12:00:01.000Z to 2026-01-31T12:00:04.000Z

rule                 decisions  over limit  over in shadow mode
shop.plan_free       4          0           0
shop.remote_address  4          2           0
`,
    stderr: "",
  });
});

Deno.test("weir simulate: every kind of limit has its words, and texts cannot steer a terminal", async () => {
  const more = `- key: shadow
  shadow_mode: true
  rate_limit: {unit: hour, unit_multiplier: 2, requests_per_unit: 0}
- key: free
  rate_limit: {unlimited: true}
`;
  const descriptors = [
    of("shadow", "\u001b[31m"),
    of("free", "x"),
    of("none", "x".repeat(300)),
    of("remote_address", "y", { limit: { requestsPerUnit: 5, unit: "DAY" } }),
  ];
  // A domain without rules limits nothing, not even by a limit that the request brings along.
  const { code, stdout } = await simulated([line(0.5, ...descriptors)], {
    old: 'domain: other\ndescriptors: [{key: "a"}]\n',
    new: rules(1, more),
  });
  assertEquals([code, stdout.split("\n").slice(0, 3)], [1, [
    "line 1, 1970-01-01T00:00:00.500Z: OK",
    "  shadow=\\u001b[31m: OK without a limit -> OK by shop.shadow (0 per 2 HOURS), remaining 0, over in shadow mode",
    "  free=x: OK without a limit -> OK by shop.free (unlimited)",
  ]]);
  assertMatch(stdout, /^\(no limit\) +4 -> 1 +0 -> 0 +0 -> 0 +0 +0 +0$/m);
  assertMatch(stdout, /^\(limits of the requests\) +0 -> 1 /m);
  assertMatch(stdout, /^shop\.shadow +0 -> 1 +0 -> 0 +0 -> 1 +0 +0 +1$/m);
});

Deno.test("weir simulate --json: a line for each change, and the summary", async () => {
  const { code, stdout, stderr } = await simulated(FOUR, {
    old: OLD,
    flags: "--json --max-changes 1",
  });
  const [, change, summary, ...more] = stdout.trimEnd().split("\n").map((text) => JSON.parse(text));
  const address = { rule: "shop.remote_address", remaining: 0, shadowed: false };
  const plan = {
    code: "OK",
    rule: "shop.plan_free",
    limit: { requestsPerUnit: 100, unit: "HOUR", windowSeconds: 3_600 },
    remaining: 97,
    shadowed: false,
  };
  assertEquals([code, stderr, more], [1, "", []]);
  assertEquals(change, {
    type: "change",
    line: 3,
    time: "2026-01-31T12:00:03.000Z",
    domain: "shop",
    change: "toOverLimit",
    overallCode: { old: "OK", new: "OVER_LIMIT" },
    descriptors: [{
      entries: [{ key: "remote_address", value: "10.0.0.1" }],
      change: "toOverLimit",
      old: { ...address, code: "OK", limit: { requestsPerUnit: 3, unit: "MINUTE", windowSeconds: 60 } },
      new: {
        ...address,
        code: "OVER_LIMIT",
        limit: { requestsPerUnit: 2, unit: "MINUTE", windowSeconds: 60 },
      },
    }, { entries: [{ key: "plan", value: "free" }], old: plan, new: plan }],
  });
  const none = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  const changed = { toOverLimit: 1, toOk: 0, otherLimit: 3 };
  const counts = (overLimit: number) => ({ decisions: 4, overLimit, shadowed: 0 });
  assertEquals(summary, {
    type: "summary",
    requests: 4,
    decisions: 8,
    wrongLines: 0,
    from: "2026-01-31T12:00:01.000Z",
    to: "2026-01-31T12:00:04.000Z",
    overLimitRequests: { old: 1, new: 2 },
    changedRequests: changed,
    changedDecisions: changed,
    rules: [
      { source: "rule", rule: "shop.plan_free", old: counts(0), new: counts(0), changed: none },
      { source: "rule", rule: "shop.remote_address", old: counts(1), new: counts(2), changed },
    ],
    notShown: { ...none, otherLimit: 2 },
    backInTime: { requests: 0, mostSeconds: 0, byMoreThanAMinute: 0 },
    evictedCounters: 0,
  });
});

Deno.test("weir simulate --json: of rules alone", async () => {
  const answer = await simulated(FOUR, { flags: "--json --max-changes 0" });
  const { rules: byRule, overLimitRequests, changedRequests } = summaryOf(answer);
  assertEquals([answer.code, answer.stdout.split("\n").length, overLimitRequests, changedRequests, byRule], [
    0,
    2,
    { new: 2 },
    undefined,
    [
      { source: "rule", rule: "shop.plan_free", new: { decisions: 4, overLimit: 0, shadowed: 0 } },
      { source: "rule", rule: "shop.remote_address", new: { decisions: 4, overLimit: 2, shadowed: 0 } },
    ],
  ]);
});

Deno.test("weir simulate: a new window begins with the time of a line, however long that lies ahead", async () => {
  const times = [
    "2026-01-31T12:00:59Z",
    "2026-01-31T12:00:59.999Z",
    "2026-01-31T12:01:00Z",
    "2031-01-31T12:01:00Z",
  ];
  const answer = await simulated(times.map((time) => line(time, ADDRESS)), {
    new: rules(1),
    flags: "--json",
  });
  assertEquals(answer.stdout.split("\n").slice(0, -2).map((text) => JSON.parse(text).line), [2]);
});

Deno.test("weir simulate: lines that go back count in the windows of their times, and are reported", async () => {
  const times = ["12:00:50", "12:01:10", "12:00:59", "12:05:00", "12:01:20"];
  const lines = times.map((time) => line(`2026-01-31T${time}Z`, ADDRESS));
  const answer = await simulated(lines, { new: rules(1) });
  assertEquals(answer.stdout.split("\n").filter((text) => text.startsWith("line")), [
    "line 3, 2026-01-31T12:00:59.000Z: OVER_LIMIT",
  ]);
  assertEquals(answer.stdout.trimEnd().split("\n").slice(-3), [
    "",
    "requests that go back in time: 2, by at most 220 s; each was decided at its own time",
    "by more than a minute: 1; windows that were over may have begun anew for them",
  ]);
});

Deno.test("weir simulate: settings that decide count as for the service, others do not", async () => {
  const over = async (environment: Record<string, string>) =>
    summaryOf(await simulated(FOUR, { environment, flags: "--json" }));
  assertEquals((await over({ KV_TYPE: "nonsense", BACKEND_TYPE: "kv" }))["overLimitRequests"], { new: 2 });
  assertEquals((await over({ SHADOW_MODE: "true" }))["overLimitRequests"], { new: 0 });
  assertEquals((await over({ QUOTA_MODE: "true" }))["overLimitRequests"], { new: 0 });
  assertEquals((await over({ MEMORY_MAX_KEYS: "1" }))["evictedCounters"], 7);
  const wrong = await simulated(FOUR, { environment: { SHADOW_MODE: "maybe" } });
  assertEquals([wrong.code, wrong.stdout], [2, ""]);
  assertMatch(wrong.stderr, /^Invalid SHADOW_MODE "maybe": /);
});

Deno.test("weir simulate: wrong lines are named and passed over, up to a bound", async () => {
  const lines = ["{", FOUR[0] ?? "", line("noon", ADDRESS), line(1), FOUR[1] ?? ""];
  const wrong = [
    "DIR/requests:1: not valid JSON at column 2",
    "DIR/requests:3: time: must be a time such as 2026-01-31T12:00:00Z, or seconds since the epoch",
    "DIR/requests:4: descriptors: rate limit descriptor list must not be empty",
  ];
  const passed = await simulated(lines, { flags: "--max-wrong 3" });
  assertEquals([passed.code, passed.stderr], [2, `${wrong.join("\n")}\n`]);
  assertEquals(passed.stdout.split("\n").slice(0, 4), [
    "requests: 2, over limit: 0",
    "decisions: 4, over limit: 0",
    "times: 2026-01-31T12:00:01.000Z to 2026-01-31T12:00:02.000Z",
    "invalid lines: 3",
  ]);
  assertEquals(await simulated(lines, { flags: "--max-wrong 2" }), {
    code: 2,
    stdout: "",
    stderr: `${wrong.join("\n")}\nCannot go on with "DIR/requests": more than 2 invalid lines\n`,
  });
});

Deno.test("weir simulate: what cannot be begun ends with 2, which is no change", async () => {
  const bad = await simulated(FOUR, { old: OLD, new: "domain: shop\ndescriptors: 1\n" });
  assertEquals([bad.code, bad.stdout], [2, ""]);
  assertMatch(
    bad.stderr,
    /^DIR\/new\/shop\.yaml:2:14: descriptors: .*\nCannot use the rules of "DIR\/new": /,
  );
  const text = "Cannot simulate: ";
  assertEquals(await simulated(["", " "]), {
    code: 2,
    stdout: "",
    stderr: `${text}"DIR/requests" holds no request\n`,
  });
  assertEquals(await simulated([], { stdin: true }), {
    code: 2,
    stdout: "",
    stderr: `${text}"standard input" holds no request\n`,
  });
  const folder = await simulated(FOUR, { flags: "--requests /" });
  assertEquals([folder.code, folder.stderr], [2, 'Cannot read "/": Is a directory (os error 21)\n']);
  const nowhere = await simulated(FOUR, { flags: "--requests /no/such/file" });
  assertMatch(nowhere.stderr, /^Cannot read "\/no\/such\/file": No such file/);
});

Deno.test("weir simulate --help: tells the exit codes", async () => {
  const { code, stdout } = await ran("simulate --help");
  assertEquals([code, stdout.split("\n")[0]], [0, "usage: weir simulate [flags]"]);
  assertMatch(
    stdout,
    /^Exit code: 0 no decision changes, 1 decisions change, 2 invalid usage, rules or requests\.$/m,
  );
});

Deno.test("weir simulate: what another algorithm would decide", async () => {
  const sliding = rules(3).replace("requests_per_unit: 3", "requests_per_unit: 3, algorithm: sliding_window");
  // Three at the end of a minute and three at the start of the next one.
  const times = ["00:58", "00:58", "00:59", "01:00", "01:01", "01:02", "02:03"];
  const lines = times.map((time) => line(`2026-01-31T12:${time}Z`, ADDRESS));
  const { code, stdout } = await simulated(lines, { old: rules(3), new: sliding });
  assertEquals(code, 1);
  assertEquals(stdout.split("\n").filter((text) => /^(line|requests)/.test(text)), [
    ...["58.000Z", "58.000Z", "59.000Z"].map((rest, index) =>
      `line ${index + 1}, 2026-01-31T12:00:${rest}: OK`
    ),
    ...["00", "01", "02"].map((second, index) =>
      `line ${index + 4}, 2026-01-31T12:01:${second}.000Z: OK -> OVER_LIMIT`
    ),
    "line 7, 2026-01-31T12:02:03.000Z: OK",
    "requests: 7, over limit: 0 -> 3; changed: 3 OK -> OVER_LIMIT, 0 OVER_LIMIT -> OK, 4 other limit",
  ]);
});

import { assertEquals, assertMatch } from "#assert";
import { Cidrs } from "../../../src/net/outbound/address_ranges.ts";
import type { Lookup } from "../../../src/net/outbound/dial.ts";
import { createGuardedFetch } from "../../../src/net/outbound/fetch.ts";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { retried, WorkflowBed } from "../../harness/workflow_fixture.ts";

/** The answer of the server, the number of attempts, 1 s and then 2 s after the previous one, and the error of the step. */
const ANSWERS: Readonly<Record<string, readonly [answer: () => Response, attempts: number, error?: string]>> =
  {
    "200": [() => new Response("ok"), 1],
    "204": [() => new Response(null, { status: 204 }), 1],
    "301, which is not followed": refused(301, 1, { headers: { location: "http://127.0.0.1:1/" } }),
    "304": refused(304, 1),
    "400": refused(400, 1),
    "404": refused(404, 1),
    "408": refused(408, 3),
    "429": refused(429, 3),
    "500": refused(500, 3),
    "503": refused(503, 3),
    "a body beyond the bound": [
      () => new Response("x".repeat(1_048_577)),
      1,
      "request failed: the response body has more than 1048576 bytes",
    ],
  };

function refused(status: number, attempts: number, init: ResponseInit = {}) {
  const last = attempts > 1 ? `, at the last of ${attempts} attempts` : "";
  const answer = () => new Response(null, { ...init, status });
  return [answer, attempts, `the server responded with ${status}${last}`] as const;
}

for (const [name, [answer, attempts, error]] of Object.entries(ANSWERS)) {
  Deno.test(`workflow request: after an answer of ${name} there are ${attempts} attempts`, async () => {
    await using bed = await WorkflowBed.open();
    bed.server.answer = answer;
    const id = await bed.begin(retried(bed.server.url), {});
    bed.runner().start();
    for (let attempt = 1; attempt < attempts; attempt++) {
      assertEquals(await bed.waiting(id), 1_000 * 2 ** (attempt - 1));
      bed.clock.advance(1_000 * 2 ** (attempt - 1) - 1);
      assertEquals((await bed.find(id)).execution.stepAttempts, attempt);
      bed.clock.advance(1_001);
    }
    const { execution, steps } = await bed.ended(id);
    const [status, text] = error === undefined ? ["succeeded"] : ["failed", `step "call" failed: ${error}`];
    assertEquals(
      [execution.status, execution.error, steps[0]?.attempts, bed.server.requests.length],
      [status, text, attempts, attempts],
    );
    assertEquals(new Set(bed.server.requests.map(({ key }) => key)), new Set([`${id}:call`]));
    const [event = ""] = await bed.events();
    assertEquals(JSON.parse(event).data.error, text);
  });
}

Deno.test("workflow request: no connection is tried again, and the error names nothing of the request", async () => {
  await using bed = await WorkflowBed.open();
  const url = `http://127.0.0.1:${freePort()}/{{ input.secret }}?t={{ env.TOKEN }}`;
  const id = await bed.begin(
    `workflow: w\nsteps:\n- {name: call, request: {url: "${url}"}, retry: {attempts: 2, backoff: 1s}}`,
    { secret: "pa55word" },
  );
  bed.runner().start();
  bed.clock.advance(await bed.waiting(id));
  const { execution } = await bed.ended(id);
  assertEquals(
    execution.error,
    'step "call" failed: request failed: no connection to the host, at the last of 2 attempts',
  );
  assertEquals(bed.log.lines, []);
});

/** A receiver of which a step that is not to be retried gets no connection, or no answer. */
interface Unreached {
  readonly lookup?: Lookup;
  readonly isClosed?: boolean;
  readonly timeout?: string;
  readonly connectTimeoutMs?: number;
  readonly attempts: number;
  readonly error: string;
}

const NO_NAME: Pick<Unreached, "lookup" | "attempts"> = { lookup: () => new Promise(() => {}), attempts: 5 };
const WRITTEN = "a request that was written";
const UNREACHED: Readonly<Record<string, Unreached>> = {
  "a connection that is refused": {
    // The test moves the clock while the connection is made: no limit may strike.
    isClosed: true,
    attempts: 5,
    timeout: "15m",
    connectTimeoutMs: 900_000,
    error: "connection refused (127.0.0.1:0), at the last of 5 attempts",
  },
  "a connection that is not made in time": {
    ...NO_NAME,
    error: "no address of the host was found within 1000 ms, at the last of 5 attempts",
  },
  "a connection that is not made within the timeout of the step": {
    ...NO_NAME,
    timeout: "500ms",
    error: "no connection within 500 ms, at the last of 5 attempts",
  },
  "a name that is unknown": {
    lookup: () => Promise.reject(Object.assign(new Error(), { code: "ENOTFOUND" })),
    attempts: 1,
    error: "the name of the host cannot be resolved (ENOTFOUND)",
  },
  [WRITTEN]: { attempts: 1, error: "no response within 5000 ms" },
};

for (const [name, unreached] of Object.entries(UNREACHED)) {
  const { lookup, isClosed = false, timeout = "5s", connectTimeoutMs = 1_000, attempts, error } = unreached;
  Deno.test(`workflow request: after ${name} a step without retries has ${attempts} attempts`, async () => {
    await using bed = await WorkflowBed.open();
    const letGo = bed.server.hold();
    const closedPort = freePort();
    const serverPort = new URL(bed.server.url).port;
    const host = lookup === undefined ? "127.0.0.1" : "receiver.example";
    const url = `http://${host}:${isClosed ? closedPort : serverPort}/`;
    const allow = new Cidrs(["127.0.0.0/8"]);
    const guarded = createGuardedFetch({ allow, connectTimeoutMs, clock: bed.clock, lookup });
    const id = await bed.begin(
      `workflow: w\nsteps:\n- {name: call, request: {url: "${url}", timeout: ${timeout}}}`,
      {},
    );
    bed.runner({ fetch: guarded }).start();
    // Time that passes before would count for the connection.
    if (name === WRITTEN) await bed.server.asked();
    const reasons = new Set<unknown>();
    const ended = await until("its end", async () => {
      const { execution } = await bed.find(id);
      if (execution.status === "failed") return execution;
      if (execution.error !== undefined) reasons.add(execution.error);
      bed.clock.advance(1_000);
      return undefined;
    });
    letGo();
    await guarded.close();
    const shown = (text: unknown) => String(text).replace(`:${closedPort})`, ":0)");
    assertEquals(shown(ended.error), `step "call" failed: request failed: ${error}`);
    assertEquals((await bed.find(id)).steps[0]?.attempts, attempts);
    // While it waits, the execution has the reason.
    const reason = `request failed: ${error}`.replace(/, at the last.*/, "");
    assertEquals([...reasons].map(shown), attempts === 1 ? [] : [reason]);
  });
}

Deno.test("workflow request: an answer that does not come in time is tried again", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold(() => new Response("late"));
  const id = await bed.begin(retried(bed.server.url), {});
  bed.runner().start();
  await bed.server.asked();
  bed.clock.advance(5_000);
  assertEquals(await bed.waiting(id), 1_000);
  letGo();
  bed.clock.advance(1_000);
  const { execution, steps } = await bed.ended(id);
  assertEquals([execution.status, steps[0]?.attempts], ["succeeded", 2]);
});

const HOSTILE: readonly (readonly [string, unknown, string | undefined])[] = [
  ["a path that leads up", "/../admin", undefined],
  ["an encoded path that leads up", "%2e%2e", undefined],
  ["a question mark", "?a=b", "/o/%3Fa%3Db"],
  ["a fragment", "#b", "/o/%23b"],
  ["a line break", "a\r\nx-evil: 1", "/o/a%0D%0Ax-evil%3A%201"],
  ["a host", "//evil.example/", "/o/%2F%2Fevil.example%2F"],
  ["a user name", "@evil.example", "/o/%40evil.example"],
  ["a backslash", "\\\\evil.example", "/o/%5C%5Cevil.example"],
  ["a name of a prototype", "__proto__", "/o/__proto__"],
];

for (const [name, value, path] of HOSTILE) {
  Deno.test(`workflow request: ${name} from a caller steers no request`, async () => {
    await using bed = await WorkflowBed.open();
    const id = await bed.begin(
      `workflow: w\nsteps:\n- {name: call, request: {url: "${bed.server.url}/o/{{ input.v }}"}}`,
      { v: value },
    );
    bed.runner().start();
    const { execution } = await bed.ended(id);
    assertEquals(bed.server.requests.map((seen) => seen.path), path === undefined ? [] : [path]);
    assertEquals(execution.status, path === undefined ? "failed" : "succeeded");
  });
}

Deno.test("workflow request: a line break in a header, and what is not there, fail the step", async () => {
  await using bed = await WorkflowBed.open();
  const header =
    `workflow: h\nsteps:\n- {name: call, request: {url: "${bed.server.url}/", headers: {x-a: "{{ input.v }}"}}}`;
  const missing = `workflow: m\nsteps:\n- {name: call, set: {a: "{{ input.constructor }}"}}`;
  const ids = [
    await bed.begin(header, { v: "a\r\nx-evil: 1" }),
    await bed.begin(header, { v: "€" }),
    await bed.begin(missing, { v: 1 }),
    await bed.begin(missing, '{"__proto__":{"constructor":1}}'),
  ];
  bed.runner().start();
  const errors: unknown[] = [];
  for (const id of ids) errors.push((await bed.ended(id)).execution.error);
  const inHeader = 'step "call" failed: Cannot write the header "x-a": ' +
    "it would hold a line break, a control character or one beyond Latin-1";
  const notThere = 'step "call" failed: Cannot read "input.constructor": it has no value';
  assertEquals(errors, [inHeader, inHeader, notThere, notThere]);
  assertEquals(bed.server.requests, []);
});

Deno.test("workflow request: a result beyond the bound fails its step", async () => {
  await using bed = await WorkflowBed.open();
  bed.server.answer = () => new Response("\u0001".repeat(1_000_000));
  const id = await bed.begin(retried(bed.server.url), {});
  bed.runner().start();
  assertEquals(
    (await bed.ended(id)).execution.error,
    'step "call" failed: its result has more than 1114112 bytes',
  );
});

Deno.test("workflow request: the guarded sender's own words tell why there is no answer", async () => {
  await using bed = await WorkflowBed.open();
  const id = await bed.begin(
    `workflow: w\nsteps:\n- {name: call, request: {url: "http://169.254.169.254/{{ input.v }}"}}`,
    { v: "secret-value" },
  );
  const dial = { allow: new Cidrs([]), connectTimeoutMs: 1_000, clock: bed.clock };
  const guarded = createGuardedFetch(dial);
  bed.runner({ fetch: guarded }).start();
  const { execution } = await bed.ended(id);
  await guarded.close();
  assertMatch(execution.error ?? "", /^step "call" failed: request failed: .*169\.254\.169\.254/);
});

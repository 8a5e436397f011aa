import { assert, assertEquals, assertMatch } from "#assert";
import process from "node:process";
import type { DebugRoute } from "../../../../src/http/routes/debug.ts";
import { until } from "../../../harness/until.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";

interface Profile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string } }[];
  readonly samples: readonly number[];
}

function serveDebug(routes: readonly DebugRoute[] = []): HandledHttp {
  return new HandledHttp(debugHandler({ routes, newRequestId: () => "made" }));
}

const PPROF_LIST = [
  "/debug/pprof/heap: statistics of the JavaScript heap\n",
  "/debug/pprof/memory: memory of the process and of the machine\n",
  "/debug/pprof/profile: a CPU profile as a .cpuprofile file, ?seconds=1 to 300, 30 when absent\n",
].join("");

const LIST = [
  "/debug/pprof/: list of profiles\n",
  PPROF_LIST,
  "/healthcheck: 200 and the causes of a degraded state, or 503 and why\n",
  "/livez: 200 while the process responds\n",
  "/rlconfig: the active rules\n",
  "/stats: every counter and gauge\n",
].join("");

const TEXTS: readonly (readonly [path: string, status: number, body: string])[] = [
  ["/", 200, LIST],
  ["/nowhere", 404, "404 page not found\n"],
  ["/debug/pprof/nowhere", 404, "404 page not found\n"],
  ["/rlconfig", 200, "the rules\n"],
  ["/stats", 200, "the stats\n"],
  ["/healthcheck", 200, "OK"],
  ["/livez", 200, "OK"],
  ["/debug/pprof/", 200, PPROF_LIST],
];

for (const [path, status, expected] of TEXTS) {
  Deno.test(`debug path ${path} is ${status}, for GET and HEAD`, async () => {
    const served = serveDebug();
    for (const method of ["GET", "HEAD"]) {
      const response = await served.fetch(path, { method });
      const body = await response.text();
      assertEquals([response.status, body], [status, method === "GET" ? expected : ""]);
      assertEquals(response.headers.get("x-request-id"), "made");
    }
  });
}

for (const path of ["/", "/stats", "/debug/pprof/profile"]) {
  Deno.test(`POST ${path} on the debug port is 405`, async () => {
    const served = serveDebug();
    const response = await served.fetch(path, { method: "POST", body: "x" });
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("allow")], [405, "GET, HEAD"]);
  });
}

const LINK = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
const FRAME = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
const IMAGE = { "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" };

/** Headers that a browser sends about a request, and the answer: pages of other sites may link to the debug port, and no more. */
const SITES: readonly (readonly [headers: Record<string, string>, status: number])[] = [
  [{ "sec-fetch-site": "cross-site", ...IMAGE }, 403],
  [{ "sec-fetch-site": "same-site", ...IMAGE }, 403],
  [{ "sec-fetch-site": "cross-site", ...FRAME }, 403],
  [{ "sec-fetch-site": "cross-site" }, 403],
  [{ "sec-fetch-site": "cross-site", ...LINK }, 200],
  [{ "sec-fetch-site": "same-origin", ...IMAGE }, 200],
  [{ "sec-fetch-site": "none", ...LINK }, 200],
];

for (const [headers, status] of SITES) {
  Deno.test(`a request with ${JSON.stringify(headers)} is ${status}`, async () => {
    const served = serveDebug();
    for (const path of ["/stats", "/rlconfig", "/healthcheck", "/debug/pprof/heap"]) {
      const response = await served.fetch(path, { headers });
      const body = await response.text();
      assertEquals([path, response.status], [path, status]);
      if (status === 403) assertEquals(JSON.parse(body).reason, "pages of other sites are not served");
    }
  });
}

Deno.test("further paths are served and listed in their place", async () => {
  const further = {
    path: "/further",
    methods: ["GET"],
    help: "of a test",
    handle: () => new Response("more"),
  };
  const served = serveDebug([further]);
  assertEquals(await (await served.fetch("/further")).text(), "more");
  const list = await (await served.fetch("/")).text();
  assertEquals(list.split("\n").map((line) => line.split(":")[0]).slice(3, 6), [
    "/debug/pprof/profile",
    "/further",
    "/healthcheck",
  ]);
});

const METRICS: readonly (readonly [path: string, names: readonly string[]])[] = [
  ["/debug/pprof/heap", [
    "memory.heapUsed",
    "heap.used_heap_size",
    "heap.heap_size_limit",
    "space.old_space.used",
  ]],
  ["/debug/pprof/memory", ["process.rss", "process.heapTotal", "machine.total", "machine.available"]],
];

for (const [path, names] of METRICS) {
  Deno.test(`${path} shows metrics as lines`, async () => {
    const served = serveDebug();
    const text = await (await served.fetch(path)).text();
    const lines = text.trimEnd().split("\n");
    for (const line of lines) assertMatch(line, /^[\w.]+: \d+$/);
    const metrics = new Map(lines.map((line) => [line.split(": ")[0], Number(line.split(": ")[1])]));
    for (const name of names) assert((metrics.get(name) ?? 0) > 0, name);
  });
}

for (const seconds of ["0", "301", "1.5", "-1", "abc", "", "1e2", "0x1", "99999"]) {
  Deno.test(`a profile of "${seconds}" seconds is 400`, async () => {
    const served = serveDebug();
    const response = await served.fetch(`/debug/pprof/profile?seconds=${seconds}`);
    const reason = "must be a whole number from 1 to 300";
    assertEquals(await response.json() as unknown, {
      type: "about:blank",
      title: "Bad Request",
      status: 400,
      detail: `Cannot read "seconds": ${reason}`,
      field: "seconds",
      reason,
      requestId: "made",
    });
    assertEquals(response.status, 400);
  });
}

/** Works for so long; what others take of the machine meanwhile does not count. */
function decideInALoop(workMs: number): number {
  let sum = 0;
  const { user } = process.cpuUsage();
  while (process.cpuUsage().user - user < workMs * 1_000) {
    for (let i = 0; i < 100_000; i++) sum += Math.sqrt(i);
  }
  return sum;
}

Deno.test("a profile under load has over 100 samples and names the function of the load", async () => {
  const served = serveDebug();
  const profiled = served.fetch("/debug/pprof/profile?seconds=1");
  await until("the recording to run", () => served.clock.waiting === 1);
  // Real work for the sampler; the recording itself ends by the clock of the test.
  decideInALoop(700);
  served.clock.advance(1_000);
  const response = await profiled;
  assertEquals(
    [response.status, response.headers.get("content-type"), response.headers.get("content-disposition")],
    [200, "application/json", `attachment; filename="weir-1s.cpuprofile"`],
  );
  const { nodes, samples } = await response.json() as Profile;
  const ids = new Set(
    nodes.filter(({ callFrame }) => callFrame.functionName === "decideInALoop").map(({ id }) => id),
  );
  const inLoad = samples.filter((id) => ids.has(id)).length;
  assert(inLoad > 100, `${inLoad} of ${samples.length} samples in the load`);
  assertEquals(served.clock.waiting, 0);
});

Deno.test("HEAD of a profile records nothing", async () => {
  const served = serveDebug();
  const response = await served.fetch("/debug/pprof/profile?seconds=300", { method: "HEAD" });
  assertEquals(
    [response.status, response.headers.get("content-disposition"), served.clock.waiting],
    [200, `attachment; filename="weir-300s.cpuprofile"`, 0],
  );
});

Deno.test("the second of two profiles at the same time is 409, the next one runs, 30 s when nothing is said", async () => {
  const served = serveDebug();
  const first = served.fetch("/debug/pprof/profile?seconds=300");
  await until("the first to run", () => served.clock.waiting === 1);
  const second = await served.fetch("/debug/pprof/profile");
  const { reason } = await second.json() as { reason: string };
  assertEquals([second.status, reason], [409, "another CPU profile is being recorded"]);
  served.clock.advance(300_000);
  await (await first).body?.cancel();
  const third = served.fetch("/debug/pprof/profile");
  await until("the third to run", () => served.clock.waiting === 1);
  served.clock.advance(29_999);
  assertEquals(served.clock.waiting, 1);
  served.clock.advance(1);
  const response = await third;
  await response.body?.cancel();
  assertEquals(response.status, 200);
});

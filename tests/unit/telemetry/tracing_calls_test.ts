import { assertEquals, assertRejects } from "#assert";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import type { CallContext, GrpcService } from "../../../src/grpc/grpc_service.ts";
import { traceGrpcService } from "../../../src/telemetry/tracing_calls.ts";
import { CallTracer } from "../../../src/telemetry/tracing_spans.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { exported, TracingBed, unaryOf } from "../../harness/tracing_bed.ts";

const METHOD = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const EXECUTION = "ShouldRateLimit Execution";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";

const BODY = '{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';

const server = (code: string) => ({
  "rpc.system.name": "grpc",
  "rpc.method": METHOD,
  "rpc.response.status_code": code,
});
const route = (status: number) => ({
  "http.route": "/json",
  "http.request.method": "POST",
  "http.response.status_code": status,
});
const asked = (...keys: string[]) => ({
  domain: "d",
  "request string": [
    'domain:"d"',
    ...keys.map((key) => `descriptors:{entries:{key:"${key}" value:"v"}}`),
  ].join(" "),
});
const pipeline = (length: number, perSecond: number) => ({
  "pipeline length": length,
  "perSecondPipeline length": perSecond,
});

const NO_HEADERS: CallContext = { header: () => undefined, cancelled: false };

/** A tracer of every call that keeps its spans here. */
function tracerTo(ended: ReadableSpan[]): CallTracer {
  return new CallTracer({
    onEnd: (span) => void ended.push(exported(span)),
    samplingRate: 1,
    random: () => 0,
    clock: new FakeClock(),
  });
}

Deno.test("tracing: a gRPC call has a span for itself, its decision and its round trip, nested", async () => {
  await using bed = new TracingBed();
  assertEquals(await bed.ask(["k"]), "OK");
  assertEquals(bed.spans, [
    { name: "KV Pipeline Execution", above: EXECUTION, attributes: pipeline(2, 0) },
    { name: EXECUTION, above: METHOD, attributes: asked("k") },
    { name: METHOD, above: undefined, attributes: server("OK") },
  ]);
  assertEquals(bed.finished.map(({ kind }) => kind), [2, 0, 1]);
});

Deno.test("tracing: an HTTP call has the same, although its body is waited for", async () => {
  await using bed = new TracingBed();
  assertEquals(await bed.post(BODY), 200);
  assertEquals(bed.spans, [
    { name: "KV Pipeline Execution", above: EXECUTION, attributes: pipeline(2, 0) },
    { name: EXECUTION, above: "POST /json", attributes: asked("k") },
    { name: "POST /json", above: undefined, attributes: route(200) },
  ]);
});

Deno.test("tracing: calls at the same time keep their spans apart", async () => {
  await using bed = new TracingBed();
  await Promise.all([bed.ask(["k"]), bed.ask(["fast"]), bed.ask(["other"])]);
  const traces = Map.groupBy(bed.finished, (span) => span.spanContext().traceId);
  const names = [...traces.values()].map((spans) => spans.map(({ name }) => name).sort());
  // What no rule limits asks no cache.
  assertEquals(names.toSorted((one, other) => one.length - other.length), [
    [EXECUTION, METHOD].sort(),
    ...Array(2).fill(["KV Pipeline Execution", EXECUTION, METHOD].sort()),
  ]);
});

Deno.test("tracing: a call that is not recorded has no part in one that waits meanwhile", async () => {
  await using bed = new TracingBed();
  const waiting = bed.ask(["k"]);
  await Promise.all([bed.ask(["k"], { b3: "0" }), bed.ask(["fast"], { b3: "0" })]);
  await waiting;
  assertEquals(bed.spans.map(({ name }) => name), ["KV Pipeline Execution", EXECUTION, METHOD]);
});

/** One form of headers each: reading them all is the matter of the trace context. */
const PARENTS: readonly (readonly [way: string, headers: Readonly<Record<string, string>>])[] = [
  ["gRPC", { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: "a=1" }],
  ["HTTP", { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: "a=1" }],
  ["HTTP", { "x-b3-traceid": TRACE, "x-b3-spanid": PARENT, "x-b3-sampled": "1" }],
];

for (const [way, headers] of PARENTS) {
  Deno.test(`tracing: a ${way} call goes on with a trace of ${Object.keys(headers)[0]}, whatever the rate`, async () => {
    await using bed = new TracingBed({ samplingRate: 0 });
    await (way === "gRPC" ? bed.ask(["k"], headers) : bed.post(BODY, headers));
    const seen = bed.finished.map((span) => {
      const { traceId, traceState } = span.spanContext();
      return [traceId, traceState?.serialize()];
    });
    assertEquals(seen, Array(3).fill([TRACE, headers["tracestate"]]));
    assertEquals(bed.spans.at(-1)?.above, PARENT);
  });
}

const OPEN = { b3: `${TRACE}-${PARENT}` };
const CHOICES: readonly [
  title: string,
  samplingRate: number,
  random: number,
  headers: Readonly<Record<string, string>>,
  spans: number,
][] = [
  ["a rate of 0", 0, 0, {}, 0],
  ["a rate of 1", 1, 0.999, {}, 3],
  ["a rate above chance", 0.3, 0.29, {}, 3],
  ["a rate below chance", 0.3, 0.6, {}, 0],
  ["a caller that records nothing by W3C", 1, 0, { traceparent: `00-${TRACE}-${PARENT}-00` }, 0],
  ["a caller that records nothing by B3", 1, 0, { b3: "0" }, 0],
  ["a caller that requires a record by B3", 0, 0, { b3: "1" }, 3],
  ["a caller that leaves it open, and a rate of 0", 0, 0, OPEN, 0],
  ["a caller that leaves it open, and a rate of 1", 1, 0, OPEN, 3],
];

for (const [title, samplingRate, random, headers, spans] of CHOICES) {
  Deno.test(`tracing: ${spans} spans with ${title}`, async () => {
    await using bed = new TracingBed({ samplingRate, random });
    assertEquals([await bed.ask(["k"], headers), await bed.post(BODY, headers)], ["OK", 200]);
    assertEquals(bed.spans.length, spans * 2);
  });
}

for (const later of [true, false]) {
  Deno.test(`tracing: the failure of a call is the status of its spans, ${later ? "later" : "immediately"}`, async () => {
    await using bed = new TracingBed({ cache: new FailingCache(["x", "x"], { later }) });
    assertEquals(await bed.ask(["k"]), "UNAVAILABLE");
    assertEquals(await bed.post(BODY), 503);
    const inner = [["KV Pipeline Execution", "gone"], [EXECUTION, "gone"]];
    assertEquals(bed.spans.map(({ name, error = "none" }) => [name, error]), [
      ...[...inner, [METHOD, "gone"], ...inner, ["POST /json", ""]],
    ]);
    assertEquals(bed.spans[2]?.attributes, server("UNAVAILABLE"));
  });
}

Deno.test("tracing: a request that is refused is no error of the server, and asked no cache", async () => {
  await using bed = new TracingBed();
  assertEquals(await bed.ask([]), "INVALID_ARGUMENT");
  assertEquals(await bed.post('{"domain":"d"}'), 400);
  const error = "rate limit descriptor list must not be empty";
  assertEquals(bed.spans, [
    { name: EXECUTION, above: METHOD, attributes: asked(), error },
    { name: METHOD, above: undefined, attributes: server("INVALID_ARGUMENT") },
    { name: EXECUTION, above: "POST /json", attributes: asked(), error },
    { name: "POST /json", above: undefined, attributes: route(400) },
  ]);
});

const FAULTS = "UNKNOWN DEADLINE_EXCEEDED UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS".split(" ");
const REFUSALS =
  ("CANCELLED INVALID_ARGUMENT NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED " +
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNAUTHENTICATED").split(" ");

for (const code of [...FAULTS, ...REFUSALS]) {
  const isError = FAULTS.includes(code);
  Deno.test(`tracing: a server span that ends with ${code} ${isError ? "has" : "keeps"} its status`, async () => {
    const ended: ReadableSpan[] = [];
    const tracer = tracerTo(ended);
    const handle = () => Promise.reject(Object.assign(new Error("refused"), { code }));
    const traced = traceGrpcService({ name: "s", methods: [{ kind: "unary", name: "m", handle }] }, tracer);
    await assertRejects(async () => await unaryOf(traced).handle(new Uint8Array(), NO_HEADERS));
    const status = isError ? { code: 2, message: "refused" } : { code: 0 };
    assertEquals(ended.map((span) => [span.status, span.attributes["rpc.response.status_code"]]), [
      [status, code],
    ]);
  });
}

Deno.test("tracing: an error that names no code is one of the server", async () => {
  const ended: ReadableSpan[] = [];
  const handle = () => {
    throw new Error("it broke");
  };
  const service: GrpcService = { name: "s", methods: [{ kind: "unary", name: "m", handle }] };
  const traced = traceGrpcService(service, tracerTo(ended));
  await assertRejects(async () => await unaryOf(traced).handle(new Uint8Array(), NO_HEADERS));
  assertEquals(ended.map(({ status }) => status), [{ code: 2, message: "it broke" }]);
});

Deno.test("tracing: a decision that asks twice has both round trips below it", async () => {
  await using bed = new TracingBed({
    policy: { stopIncrementWhenOverLimit: true },
    traced: { backend: "kv", perSecond: true },
  });
  await bed.ask(["k", "fast"]);
  const trip = { name: "KV Pipeline Execution", above: EXECUTION };
  assertEquals(bed.spans, [
    { ...trip, attributes: pipeline(1, 1) },
    { ...trip, attributes: pipeline(2, 2) },
    { name: EXECUTION, above: METHOD, attributes: asked("k", "fast") },
    { name: METHOD, above: undefined, attributes: server("OK") },
  ]);
});

Deno.test("tracing: a decision that asks twice is not traced where its call is not", async () => {
  await using bed = new TracingBed({ policy: { stopIncrementWhenOverLimit: true }, samplingRate: 0 });
  assertEquals([await bed.ask(["k", "fast"]), bed.spans], ["OK", []]);
});

Deno.test("tracing: a memcached-style cache has its own span; the embedded one answers within the decision", async () => {
  for (const backend of ["mc", "memory"] as const) {
    const cache = new MemoryCache({ maxKeys: 10, clock: new FakeClock() });
    await using bed = new TracingBed({ cache, traced: { backend, perSecond: false } });
    await bed.ask(["k", "fast"]);
    const fetched = { name: "MC Fetch Execution", above: EXECUTION, attributes: { "keysToGet length": 2 } };
    const own = bed.spans.filter(({ name }) => ![EXECUTION, METHOD].includes(name));
    assertEquals([own, bed.spans.length], backend === "mc" ? [[fetched], 3] : [[], 2]);
    assertEquals(bed.finished[0]?.kind, backend === "mc" ? 2 : 0);
  }
});

Deno.test("tracing: streams are left as they are", () => {
  const tracer = tracerTo([]);
  const service: GrpcService = {
    name: "s",
    methods: [
      { kind: "server_streaming", name: "Watch", open: () => () => {} },
      { kind: "bidi", name: "Talk", open: () => ({ receive: () => {} }) },
    ],
  };
  assertEquals(traceGrpcService(service, tracer), service);
});

Deno.test("tracing: direct responses are those of untraced calls, and as many calls are traced as without them", () => {
  const runs = [true, false].map((isDirect) => {
    const ended: ReadableSpan[] = [];
    const tracer = new CallTracer({
      onEnd: (span) => void ended.push(exported(span)),
      samplingRate: 0.2,
      random: seededRandom(1),
      clock: new FakeClock(),
    });
    let direct = 0;
    const service: GrpcService = {
      name: "test.Direct",
      methods: [{
        kind: "unary",
        name: "Ask",
        handle: (request) => request,
        direct: (bytes, start) => {
          if (!isDirect || bytes[start] === 0) return undefined;
          direct++;
          return { maxBytes: 0, write: (_, at) => at };
        },
      }],
    };
    const method = unaryOf(traceGrpcService(service, tracer));
    const traced: number[] = [];
    for (let call = 0; call < 500; call++) {
      // Some are not known, and some have the headers of a trace.
      const request = Uint8Array.of(call % 7);
      const fields = call % 11 === 0 ? [["traceparent", `00-${TRACE}-${PARENT}-01`]] as const : [];
      const header = (name: string) => fields.find(([known]) => known === name)?.[1];
      const before = ended.length;
      if (method.direct?.(request, 0, 1, fields) === undefined) {
        method.handle(request, { header, fields, cancelled: false });
      }
      if (ended.length > before) traced.push(call);
    }
    return { traced, direct };
  });
  assertEquals(runs[0]?.traced, runs[1]?.traced);
  assertEquals([runs.map(({ direct }) => direct > 200), (runs[0]?.traced.length ?? 0) > 80], [
    [true, false],
    true,
  ]);
});

import { assert, assertEquals } from "#assert";
import { DecisionTally } from "../../../src/load/decision_tally.ts";
import { LoadConnection } from "../../../src/load/load_connection.ts";
import { LoadRecord } from "../../../src/load/load_record.ts";
import { RATE_LIMIT_PATH } from "../../../src/wire/rls.ts";
import { type LoadOutcome, type LoadRunOptions, runLoad } from "../../../src/load/run_load.ts";
import { benchCalls, RULES } from "../../harness/bench_rules.ts";
import { type PeerAnswer, startGrpcPeer } from "../../harness/grpc_peer.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";

/** Frames of HTTP/2 without content. */
const SETTINGS = Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0);
const PING = Uint8Array.of(0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
const SOURCE = { load: "keys", keys: 10, batch: 1, stride: 1 } as const;

Deno.test("a call is timed from when it was due", async () => {
  await using weir = await ServeFixture.start({ rules: { "bench.yaml": RULES } });
  const record = new LoadRecord();
  const tally = new DecisionTally(1);
  const connection = new LoadConnection({
    peer: { address: addressOf(weir) },
    path: RATE_LIMIT_PATH,
    inFlight: 1,
    record,
    deadline: new AbortController().signal,
    checkMessage: (body) => tally.add(body),
  });
  await connection.ready;
  connection.offer(benchCalls(SOURCE).next(), performance.now() - 5_000);
  connection.finish();
  await connection.closed;
  assertEquals({ ...tally.counts, errors: record.result().errors }, {
    OK: 1,
    OVER_LIMIT: 0,
    UNKNOWN: 0,
    errors: {},
  });
  assert(record.durations.maxMs >= 5_000 && record.durations.maxMs < 65_000, `${record.durations.maxMs}`);
});

Deno.test("calls that are offered to a closed connection are errors", async () => {
  const record = new LoadRecord();
  const connection = new LoadConnection({
    peer: { address: { host: "127.0.0.1", port: 1 } },
    path: RATE_LIMIT_PATH,
    inFlight: 1,
    record,
    deadline: new AbortController().signal,
    checkMessage: () => undefined,
  });
  await connection.closed;
  connection.offer(benchCalls(SOURCE).next(), 0);
  const { calls, errors } = record.result();
  assertEquals({ calls, errors }, { calls: 0, errors: { "connection refused": 2 } });
});

Deno.test("a server that never answers: calls in flight and waiting calls are limited, and the run ends", async () => {
  const { result, answered } = await loadOfPeer(() => undefined, {
    connections: 2,
    inFlight: 3,
    seconds: 0.5,
    perSecond: 1_000_000,
    graceMs: 200,
  });
  const { calls, errors } = result;
  assertEquals({ calls, answered }, { calls: 6, answered: 0 });
  const { "no answer before the deadline": lost = 0, "not sent: too many calls are waiting": unsent = 0 } =
    errors;
  // 100,000 waiting calls in all, and those in flight.
  assertEquals([lost <= 100_006, lost + unsent <= 500_000, Object.keys(errors).length <= 2], [
    true,
    true,
    true,
  ]);
  assert(lost > 6, `${lost}`);
});

Deno.test("calls begin when every connection is open", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = { host: "127.0.0.1", port: listener.addr.port };
  const running = loadOf({ peer: { address }, connections: 2, inFlight: 1, calls: 2, seconds: 60 });
  using first = await listener.accept();
  using second = await listener.accept();
  await first.write(SETTINGS);
  await first.write(PING);
  const before = await readUntil(first, "\0\0\x08\x06\x01");
  await second.write(SETTINGS);
  await readUntil(first, "keys");
  await readUntil(second, "keys");
  assertEquals(before.includes("keys"), false);
  first.close();
  second.close();
  assertEquals((await running).result.calls, 2);
});

Deno.test("a number of calls ends a run", async () => {
  const { result } = await loadOfPeer(() => ({ code: 8, details: "full" }), { calls: 25, seconds: 60 });
  const { calls, errors, statuses } = result;
  assertEquals({ calls, errors, statuses }, {
    calls: 25,
    errors: { "RESOURCE_EXHAUSTED: full": 25 },
    statuses: { RESOURCE_EXHAUSTED: 25 },
  });
});

Deno.test("different errors of a server are counted under a limited number of texts", async () => {
  let sent = 0;
  const answer = () => ({ code: 2, details: `error ${sent++}` });
  const { result } = await loadOfPeer(answer, { calls: 100, seconds: 60 });
  const texts = Object.keys(result.errors);
  assertEquals([texts.length, result.errors["other errors"]], [21, 80]);
});

async function loadOfPeer(
  answer: () => PeerAnswer,
  options: Partial<LoadRunOptions>,
): Promise<LoadOutcome & { readonly answered: number }> {
  using peer = await startGrpcPeer(RATE_LIMIT_PATH, { answer });
  const outcome = await loadOf({ peer: { address: { host: "127.0.0.1", port: peer.port } }, ...options });
  return { ...outcome, answered: outcome.durations.count };
}

function loadOf(
  options: Partial<LoadRunOptions> & { readonly peer: LoadRunOptions["peer"] },
): Promise<LoadOutcome> {
  return runLoad({
    connections: 1,
    inFlight: 4,
    source: benchCalls(SOURCE),
    checkMessage: () => undefined,
    warmUpSeconds: 0,
    seconds: 1,
    ...options,
  });
}

/** Reads latin1 text until it has this part. */
async function readUntil(connection: Deno.Conn, part: string): Promise<string> {
  const bytes = new Uint8Array(65_536);
  let text = "";
  while (!text.includes(part)) {
    const length = await connection.read(bytes);
    if (length === null) throw new Error("Cannot read: the connection ended");
    text += Array.from(bytes.subarray(0, length), (byte) => String.fromCharCode(byte)).join("");
  }
  return text;
}

function addressOf({ grpcAddress }: ServeFixture): { host: string; port: number } {
  const [host = "", port = ""] = grpcAddress.split(":");
  return { host, port: Number(port) };
}

import { assertEquals } from "#assert";
import { constants, createServer, type ServerHttp2Stream } from "node:http2";
import { framed } from "../../../src/grpc/native/message_reader.ts";
import { takeTurns } from "../../../scripts/bench/turns.ts";
import { encodeRateLimitResponse } from "../../../src/wire/rls.ts";

const LOAD = { load: "keys", keys: 10, batch: 1, connections: 1, inFlight: 4, seconds: 0.05 } as const;

type Serve = (stream: ServerHttp2Stream, place: number) => void;

/** A server whose calls are counted from 1. */
async function startServer(serve: Serve): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer();
  let place = 0;
  server.on("stream", (stream: ServerHttp2Stream) => {
    // Those behind the one that ends the connection.
    stream.on("error", () => {});
    if (!stream.destroyed) serve(stream, ++place);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("Cannot find the port of the server");
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const answer = framed(encodeRateLimitResponse({
  overallCode: 1,
  statuses: [{ code: 1, limitRemaining: 1 }, { code: 1, limitRemaining: 1 }],
  responseHeadersToAdd: [],
}));

/** Answers that both limits of a key are kept. */
const answerBoth: Serve = (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(answer);
};

Deno.test("turns: every answer is checked, in as many statuses as the load has limits", async () => {
  await using server = await startServer(answerBoth);
  const ports = [server.port];
  const [both = []] = await takeTurns({ ...LOAD, ports, turns: 2, load: "both" });
  assertEquals(both.map(({ calls, errors }) => [calls > 0, errors]), [[true, {}], [true, {}]]);
  const [one = []] = await takeTurns({ ...LOAD, ports, turns: 2 });
  const wrong = one.map(({ calls, errors }) => errors["2 statuses instead of 1"] === calls);
  assertEquals([wrong, one.map(({ errors }) => Object.keys(errors).length)], [[true, true], [1, 1]]);
});

const LOST: readonly (readonly [title: string, lose: (stream: ServerHttp2Stream) => void, error: string])[] =
  [
    [
      "a call is reset",
      (stream) => stream.close(constants.NGHTTP2_CANCEL),
      "the server reset the call with CANCEL",
    ],
    [
      "the server ends the connection",
      (stream) => stream.session?.destroy(),
      "the server closed the connection with NO_ERROR",
    ],
  ];

for (const [title, lose, error] of LOST) {
  Deno.test(`turns: the turn ends and the others come, where ${title}`, async () => {
    await using server = await startServer((stream, place) =>
      place === 3 ? lose(stream) : answerBoth(stream, place)
    );
    await using other = await startServer(answerBoth);
    const ports = [server.port, other.port];
    const [lost = [], good = []] = await takeTurns({ ...LOAD, ports, turns: 2, load: "both" });
    assertEquals([lost.length, lost[0]?.errors[error] === undefined], [2, false]);
    assertEquals(good.map(({ calls, errors }) => [calls > 0, errors]), [[true, {}], [true, {}]]);
  });
}

Deno.test("turns: calls in flight on a connection that is lost are errors, and end the turn", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    using connection = await listener.accept();
    // An empty SETTINGS frame; then the first thing with a call in it is not answered.
    await connection.write(Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
    const bytes = new Uint8Array(65_536);
    for (let text = ""; !text.includes("k3");) {
      const length = await connection.read(bytes);
      if (length === null) return;
      text += new TextDecoder("latin1").decode(bytes.subarray(0, length));
    }
  })();
  const [lost = []] = await takeTurns({ ...LOAD, ports: [listener.addr.port], turns: 2 });
  await serving;
  const errors = lost.map(({ calls, errors }) => [calls, Object.values(errors)]);
  assertEquals(errors, [[LOAD.inFlight, [LOAD.inFlight]], [0, [1]]]);
});

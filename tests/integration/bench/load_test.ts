import { assertEquals } from "#assert";
import { fileURLToPath } from "node:url";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import type { LoadResult } from "../../../src/load/load_record.ts";
import { needs } from "../../harness/tools.ts";
import { runScript } from "../../../scripts/bench/measuring_script.ts";
import { startBenchWeir, weirTarget } from "../../../scripts/bench/target.ts";

const BENCH = fileURLToPath(new URL("../../../scripts/bench/", import.meta.url));
// The calls end it, and not the time, however slow the machine is.
const COMMON = { connections: 4, inFlight: 8, keys: 50, warmUpSeconds: 0, calls: 200, seconds: 100 };

Deno.test("load.ts: every answer of the echo server is checked", async () => {
  await using echo = await startEcho();
  const load = (options: object) => runLoad({ ...COMMON, port: echo.port, ...options });
  assertEquals(await load({ expect: "echo" }), good(200));
  assertEquals(await load({ expect: "OK" }), {
    calls: 200,
    errors: { "overall code UNKNOWN instead of OK": 200 },
    statuses: { OK: 200 },
  });
  assertEquals(await load({ expect: "echo", path: "/none.Service/None" }), {
    calls: 200,
    errors: { "UNIMPLEMENTED: The server does not implement the method /none.Service/None": 200 },
    statuses: { UNIMPLEMENTED: 200 },
  });
});

Deno.test({
  ...needs(["openssl"], "load.ts: over TLS to the echo server and to Weir"),
  async fn() {
    await using owned = new AsyncDisposableStack();
    const { server: { keyFile, certFile }, authority } = owned.use(await makeCertificates());
    const tls = ["--key", keyFile, "--cert", certFile];
    const echo = owned.use(await startEcho(tls));
    const weir = await weirTarget(
      "memory-tls",
      owned.use(
        await startBenchWeir({
          BACKEND_TYPE: "memory",
          GRPC_SERVER_USE_TLS: "true",
          GRPC_SERVER_TLS_CERT: certFile,
          GRPC_SERVER_TLS_KEY: keyFile,
        }),
      ),
    );
    const load = (port: number, expect: string) =>
      runLoad({ ...COMMON, port, caFile: authority.certFile, expect });
    assertEquals([await load(echo.port, "echo"), await load(weir.port, "OK")], [good(200), good(200)]);
  },
});

type Found = Pick<LoadResult, "calls" | "errors" | "statuses">;

function good(calls: number): Found {
  return { calls, errors: {}, statuses: { OK: calls } };
}

async function runLoad(options: object): Promise<Found> {
  const { calls, errors, statuses } = await runScript<LoadResult>("load.ts", options);
  return { calls, errors, statuses };
}

async function startEcho(args: string[] = []): Promise<AsyncDisposable & { port: number }> {
  const child = new ChildProcess(Deno.execPath(), { args: ["run", "-A", `${BENCH}echo_server.ts`, ...args] });
  const { port } = await child.find({ port: /Listening for gRPC on '[^']*:(\d+)'/ });
  return { port: Number(port), [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

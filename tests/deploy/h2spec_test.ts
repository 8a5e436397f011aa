import { assertEquals } from "#assert";
import { systemClock } from "../../src/base/clock.ts";
import { createHealthService } from "../../src/grpc/health_service.ts";
import { ListenerTls } from "../../src/grpc/listener_tls.ts";
import type { TlsPair } from "../../src/net/tls_files.ts";
import { startNative } from "../../src/grpc/native/native_engine.ts";
import { Health } from "../../src/base/health.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { makeCertificates, pairOf } from "../harness/certificates.ts";
import { ChildProcess } from "../harness/child_process.ts";
import { needs, requireTool } from "../harness/tools.ts";

/** The limit of a case for an answer, in seconds: a busy machine is no failure. */
const TIMEOUT_SECONDS = 20;

const RUNS: readonly (readonly [name: string, tls: boolean, flags: readonly string[], cases: number])[] = [
  ["in plain text", false, [], 145],
  ["in plain text, strict", false, ["--strict"], 146],
  ["over TLS", true, ["-t", "-k"], 145],
  ["over TLS, strict", true, ["-t", "-k", "--strict"], 146],
];

for (const [name, tls, flags, cases] of RUNS) {
  Deno.test({
    ...needs(tls ? ["h2spec", "openssl"] : ["h2spec"], `h2spec passes ${name}`),
    async fn() {
      await using certificates = tls ? await makeCertificates() : undefined;
      const found = await runH2spec(flags, certificates && await pairOf(certificates.server));
      const summary = `${cases} tests, ${cases} passed, 0 skipped, 0 failed`;
      assertEquals(found, { code: 0, failures: [], summary, log: [] });
    },
  });
}

/** Runs the suite against a native engine that serves health, and answers what it says at the end. */
async function runH2spec(flags: readonly string[], pair: TlsPair | undefined) {
  const log: string[] = [];
  const clock = systemClock;
  const logger = createLogger({
    level: "debug",
    format: "text",
    clock,
    write: (line) => void log.push(line),
  });
  const engine = await startNative({
    services: [createHealthService(new Health())],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    tls: pair && new ListenerTls(pair, { clock, logger }),
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger,
    clock,
    random: () => 0.5,
  });
  try {
    const port = engine.address.split(":").at(-1) ?? "";
    const args = ["--host", "127.0.0.1", "--port", port, "--timeout", String(TIMEOUT_SECONDS), ...flags];
    await using suite = new ChildProcess(requireTool("h2spec"), { args });
    const { code } = await suite.exited;
    const lines = suite.stdoutLines;
    return {
      code,
      failures: lines.filter((line) => line.includes("×")),
      summary: lines.findLast((line) => /^\d+ tests, /.test(line)) ?? suite.stderrLines.join("\n"),
      log,
    };
  } finally {
    await engine.close(0);
  }
}

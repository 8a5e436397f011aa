import { residentMb } from "../../tests/harness/process_metrics.ts";
import { portOf, startBenchWeir } from "./target.ts";

const RULES = 50_000;
const CONNECTIONS = 1_000;
const MB = 1_000_000;
/** The preface of HTTP/2 and an empty SETTINGS frame. */
const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");

/** Resident memory of a process for each rule and for each open connection of a client. */
export interface ProcessRun {
  readonly rules: number;
  readonly bytesPerRule: number;
  readonly connections: number;
  readonly bytesPerConnection: number;
}

/** Measures one process with few rules and one with many. */
export async function measureProcess(): Promise<ProcessRun> {
  await using owned = new AsyncDisposableStack();
  const few = owned.use(await startBenchWeir({ BACKEND_TYPE: "memory" }));
  await few.listening(["gRPC", "HTTP"]);
  const empty = await residentMb(few.pid);
  const port = portOf(few.grpcAddress);
  await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(port, owned)));
  const connected = await residentMb(few.pid);
  const rules = { "many.yaml": rulesText() };
  const many = owned.use(await startBenchWeir({ BACKEND_TYPE: "memory" }, { rules }));
  await many.listening(["gRPC", "HTTP"]);
  const loaded = await residentMb(many.pid);
  return {
    rules: RULES,
    bytesPerRule: (loaded - empty) * MB / RULES,
    connections: CONNECTIONS,
    bytesPerConnection: (connected - empty) * MB / CONNECTIONS,
  };
}

/** Opens a connection; returns when the server has sent its settings. */
async function connect(port: number, owned: AsyncDisposableStack): Promise<void> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  owned.defer(() => connection.close());
  await connection.write(PREFACE);
  if (await connection.read(new Uint8Array(1_024)) === null) {
    throw new Error("Cannot measure connections: Weir closed one");
  }
}

function rulesText(): string {
  const rules = Array.from({ length: RULES }, (_, index) => {
    return `  - { key: account, value: a${index}, rate_limit: { unit: minute, requests_per_unit: 100 } }`;
  });
  return `domain: many\ndescriptors:\n${rules.join("\n")}\n`;
}

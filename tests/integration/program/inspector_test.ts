/** SIGUSR1 opens the inspector of Deno in any program; a service closes it. */
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";

const CLOSED = "Inspector closed: SIGUSR1 opened it; to debug, start with --inspect=127.0.0.1:9230";
const INSPECTOR_PORT = 9_229;
/** The bit of SIGUSR1 in the mask of signals that a process handles. */
const SIGUSR1_BIT = 1n << 9n;
const LISTENING = "0A";

const CASES: Readonly<Record<string, { readonly env?: Record<string, string>; readonly early?: boolean }>> = {
  "a service": {},
  "a service with two deciding threads": {
    env: { WORKERS: "2", BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1" },
  },
  "a service that is just starting": { early: true },
};

for (const [name, { env = {}, early = false }] of Object.entries(CASES)) {
  Deno.test({
    name: `SIGUSR1 leaves no inspector in ${name}`,
    ignore: Deno.build.os !== "linux",
    async fn() {
      await using weir = await startWeir({ env, ...early ? { waitFor: [] } : {} });
      // Before the runtime handles the signal it would end the process.
      await until("the runtime to handle the signal", () => handles(weir.pid));
      // The runtime may take no notice of the first.
      for (let closed = 1; closed <= 3; closed++) {
        await until(`the inspector to be closed ${closed} times`, () => {
          if (closings(weir) >= closed) return true;
          weir.signal("SIGUSR1");
          weir.signal("SIGUSR1");
          return false;
        });
        await until("its port to be closed", () => !listens(weir.pid));
      }
      await weir.listening(["gRPC", "HTTP"]);
      // The runtime may open it once more, and does not always write that it has.
      await until("its port to be closed", () => !listens(weir.pid));
    },
  });
}

function closings({ stderrLines }: WeirProcess): number {
  return stderrLines.filter((line) => line.includes(CLOSED)).length;
}

function handles(pid: number): boolean {
  const [, mask = "0"] = /SigCgt:\s*([0-9a-f]+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`)) ?? [];
  return (BigInt(`0x${mask}`) & SIGUSR1_BIT) !== 0n;
}

/** True if this process, and no other on the machine, listens on the port of the inspector. */
function listens(pid: number): boolean {
  const port = `:${INSPECTOR_PORT.toString(16).toUpperCase()}`;
  const rows = Deno.readTextFileSync(`/proc/${pid}/net/tcp`).split("\n").map((line) =>
    line.trim().split(/\s+/)
  );
  const inodes = rows.filter(([, local = "", , state]) => local.endsWith(port) && state === LISTENING)
    .map((row) => `socket:[${row[9]}]`);
  return [...Deno.readDirSync(`/proc/${pid}/fd`)].some(({ name }) => inodes.includes(linkOf(pid, name)));
}

function linkOf(pid: number, descriptor: string): string {
  try {
    return Deno.readLinkSync(`/proc/${pid}/fd/${descriptor}`);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

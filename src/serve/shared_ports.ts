import type { Clock } from "../base/clock.ts";
import { withTimeout } from "../base/wait.ts";
import { hostPort } from "../base/host_port.ts";
import type { ServiceParts } from "./parts.ts";

/** A TCP port of the settings, and the name of its listener. */
interface SharedPort {
  readonly name: string;
  readonly setting: string;
  readonly address: { readonly host: string; readonly port: number };
}

const ANSWER_MS = 500;
/** The address that reaches a listener on all interfaces. */
const LOOPBACKS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/**
 * Checks the ports before they are opened, by a connection to each: opening one to look would reset those of its clients. With
 * `LISTEN_SHARED=false` it throws for those in use. Otherwise processes may share them, which is logged as a warning where
 * each of them has its own counters.
 */
export async function checkPorts({ settings, logger, clock }: ServiceParts): Promise<void> {
  if (settings.LISTEN_SHARED && settings.BACKEND_TYPE !== "memory") return;
  const ports = portsOf(settings).filter(({ address }) => address.port !== 0);
  const areInUse = await Promise.all(ports.map(({ address }) => isInUse(address, clock)));
  const inUse = ports.filter((_, index) => areInUse[index]);
  if (!settings.LISTEN_SHARED) return refuse(inUse);
  for (const { name: listener, address } of inUse) {
    const text =
      "Another process listens on this port; with BACKEND_TYPE=memory each of them counts for itself, " +
      "so that limits multiply. Stop it, or set LISTEN_SHARED=false to refuse to share";
    logger.warning(text, { listener, address: hostPort(address) });
  }
}

async function isInUse({ host, port }: SharedPort["address"], clock: Clock): Promise<boolean> {
  const answering = Deno.connect({ hostname: LOOPBACKS[host] ?? host, port }).then((connection) => {
    connection.close();
    // Without a listener, a connection may reach itself if the system chose this very port for it.
    return connection.localAddr.port !== port;
  });
  return await withTimeout(answering, ANSWER_MS, clock, () => new Error("no answer in time")).catch(() =>
    false
  );
}

function portsOf(settings: ServiceParts["settings"]): SharedPort[] {
  const hasMetrics = settings.USE_PULL_METRICS && !settings.DISABLE_STATS;
  const grpc = { host: settings.GRPC_HOST, port: settings.GRPC_PORT };
  const ports = [
    ["http", "PORT", { host: settings.HOST, port: settings.PORT }],
    ["debug", "DEBUG_PORT", { host: settings.DEBUG_HOST, port: settings.DEBUG_PORT }],
    ["grpc", "GRPC_PORT", settings.GRPC_UDS === undefined && grpc],
    ["administration", "ADMIN_ADDR", settings.ADMIN_ADDR],
    ["trigger", "TRIGGER_ADDR", settings.TRIGGER_ADDR],
    ["metrics", "PULL_METRICS_ADDR", hasMetrics && settings.PULL_METRICS_ADDR],
  ] as const;
  return ports.flatMap(([name, setting, address]) => address ? [{ name, setting, address }] : []);
}

/** Throws for the ports in use, all of them, so that one start finds every setting to change. */
function refuse(inUse: readonly SharedPort[]): void {
  if (inUse.length === 0) return;
  const problems = inUse.map(({ name, setting, address }) =>
    `Cannot listen on "${hostPort(address)}" (${name}): another process listens on it; change ${setting}`
  );
  const sharing = "to share ports with another Weir process, set LISTEN_SHARED=true in both";
  throw new Error([...problems, sharing].join("; "));
}

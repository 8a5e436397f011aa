import { errorText } from "../base/error_text.ts";
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
 * Checks the ports before they are opened. With `LISTEN_SHARED=false` it throws for one that is in use. Otherwise
 * processes may share it, which is logged as a warning where each of them has its own counters.
 */
export async function checkPorts({ settings, logger, clock }: ServiceParts): Promise<void> {
  const ports = portsOf(settings).filter(({ address }) => address.port !== 0);
  if (!settings.LISTEN_SHARED) return refuseInUse(ports);
  if (settings.BACKEND_TYPE !== "memory") return;
  await Promise.all(ports.map(async ({ name: listener, address }) => {
    const { host, port } = address;
    const connecting = Deno.connect({ hostname: LOOPBACKS[host] ?? host, port });
    const closing = connecting.then((connection) => connection.close());
    const isInUse = await withTimeout(closing, ANSWER_MS, clock, () => new Error("no answer in time"))
      .then(() => true, () => false);
    if (!isInUse) return;
    const text =
      "Another process listens on this port; with BACKEND_TYPE=memory each of them counts for itself, " +
      "so that limits multiply. Stop it, or set LISTEN_SHARED=false to refuse to share";
    logger.warning(text, { listener, address: hostPort(address) });
  }));
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
function refuseInUse(ports: readonly SharedPort[]): void {
  const problems = ports.flatMap(({ name, setting, address }) => {
    const error = errorOf(address);
    if (error === undefined) return [];
    return [`Cannot listen on "${hostPort(address)}" (${name}): ${errorText(error)}; change ${setting}`];
  });
  if (problems.length === 0) return;
  const sharing = "to share ports with another Weir process, set LISTEN_SHARED=true in both";
  throw new Error([...problems, sharing].join("; "));
}

function errorOf({ host, port }: SharedPort["address"]): unknown {
  try {
    Deno.listen({ hostname: host, port }).close();
    return undefined;
  } catch (error) {
    return error;
  }
}

import { errorText } from "../base/error_text.ts";
import { withTimeout } from "../base/wait.ts";
import { hostPort } from "../base/host_port.ts";
import type { ServiceParts } from "./parts.ts";

/** A TCP port of the settings, and the name of its listener. */
type SharedPort = readonly [name: string, address: { readonly host: string; readonly port: number }];

const ANSWER_MS = 500;
/** The address that reaches a listener on all interfaces. */
const LOOPBACKS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/**
 * Checks the ports before they are opened. With `LISTEN_SHARED=false` it throws for one that is in use. Otherwise
 * processes may share it, which is logged as a warning where each of them has its own counters.
 */
export async function checkPorts({ settings, logger, clock }: ServiceParts): Promise<void> {
  const ports = portsOf(settings).filter(([, { port }]) => port !== 0);
  if (!settings.LISTEN_SHARED) return ports.forEach(refuseInUse);
  if (settings.BACKEND_TYPE !== "memory") return;
  await Promise.all(ports.map(async ([listener, address]) => {
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
  const ports = [
    ["http", { host: settings.HOST, port: settings.PORT }],
    ["debug", { host: settings.DEBUG_HOST, port: settings.DEBUG_PORT }],
    ["grpc", settings.GRPC_UDS === undefined && { host: settings.GRPC_HOST, port: settings.GRPC_PORT }],
    ["administration", settings.ADMIN_ADDR],
    ["trigger", settings.TRIGGER_ADDR],
    ["metrics", hasMetrics && settings.PULL_METRICS_ADDR],
  ] as const;
  return ports.flatMap(([name, address]) => address ? [[name, address] as const] : []);
}

function refuseInUse([name, address]: SharedPort): void {
  try {
    Deno.listen({ hostname: address.host, port: address.port }).close();
  } catch (cause) {
    const place = `"${hostPort(address)}" (${name})`;
    throw new Error(`Cannot listen on ${place}: ${errorText(cause)}; LISTEN_SHARED is false`, { cause });
  }
}

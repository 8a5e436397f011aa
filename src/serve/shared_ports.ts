import { errorText } from "../base/error_text.ts";
import { answeredWithin } from "../base/wait.ts";
import { hostPort } from "../base/host_port.ts";
import type { ServiceParts } from "./parts.ts";

/** A TCP port of the settings. */
interface SharedPort {
  readonly name: string;
  readonly hostname: string;
  readonly port: number;
}

/** How long a port may take to answer. */
const ANSWER_MS = 500;
/** Where a listener on all interfaces is reached. */
const LOOPBACKS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/**
 * Looks at the ports before they are opened. With `LISTEN_SHARED=false` it throws for one that is in use. Otherwise
 * processes may share it, which is logged as a warning where each of them would count for itself.
 */
export async function checkPorts({ settings, logger, clock }: ServiceParts): Promise<void> {
  const ports = portsOf(settings).filter(({ port }) => port !== 0);
  if (!settings.LISTEN_SHARED) return ports.forEach(refuseInUse);
  if (settings.BACKEND_TYPE !== "memory") return;
  await Promise.all(ports.map(async ({ name, hostname, port }) => {
    const connecting = Deno.connect({ hostname: LOOPBACKS[hostname] ?? hostname, port });
    const closing = connecting.then((connection) => connection.close());
    const isInUse = await answeredWithin(closing, ANSWER_MS, clock, () => new Error("no answer in time"))
      .then(() => true, () => false);
    if (!isInUse) return;
    const text =
      "Another process listens on this port; with BACKEND_TYPE=memory each of them counts for itself, " +
      "so that limits multiply. Stop it, or set LISTEN_SHARED=false to refuse to share";
    logger.warning(text, { listener: name, address: hostPort({ host: hostname, port }) });
  }));
}

function portsOf(settings: ServiceParts["settings"]): SharedPort[] {
  const {
    GRPC_HOST,
    GRPC_PORT,
    HOST,
    PORT,
    DEBUG_HOST,
    DEBUG_PORT,
    ADMIN_ADDR,
    PULL_METRICS_ADDR,
    TRIGGER_ADDR,
  } = settings;
  const ports = [
    { name: "http", hostname: HOST, port: PORT },
    { name: "debug", hostname: DEBUG_HOST, port: DEBUG_PORT },
  ];
  if (settings.GRPC_UDS === undefined) ports.push({ name: "grpc", hostname: GRPC_HOST, port: GRPC_PORT });
  const addresses = [
    ["administration", ADMIN_ADDR],
    ["trigger", TRIGGER_ADDR],
    ["metrics", settings.USE_PULL_METRICS && !settings.DISABLE_STATS ? PULL_METRICS_ADDR : undefined],
  ] as const;
  for (const [name, address] of addresses) {
    if (address !== undefined) ports.push({ name, hostname: address.host, port: address.port });
  }
  return ports;
}

function refuseInUse({ name, hostname, port }: SharedPort): void {
  try {
    Deno.listen({ hostname, port }).close();
  } catch (cause) {
    const state = errorText(cause);
    throw new Error(
      `Cannot listen on "${hostPort({ host: hostname, port })}" (${name}): ${state}; LISTEN_SHARED is false`,
      {
        cause,
      },
    );
  }
}

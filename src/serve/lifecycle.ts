import { aborted } from "../base/wait.ts";
import { hostPort } from "../base/host_port.ts";
import type { HttpPort } from "../http/server/http_port.ts";
import type { Logger } from "../base/log.ts";
import type { ServiceParts } from "./parts.ts";
import { reportState } from "./systemd_notification.ts";

/** A part of the service that is off. */
export const NOT_OPENED = { close: () => Promise.resolve() } as const;

/** The address of a listener: `host:port`. */
export function addressOf({ hostname, port }: Pick<HttpPort, "hostname" | "port">): string {
  return hostPort({ host: hostname, port });
}

/** The TCP port of an address `host:port`. */
export function portOf({ address }: { readonly address: string }): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** The open parts of a service, closed in the opposite order when it stops or cannot start. */
export class OpenedParts {
  readonly #stack = new AsyncDisposableStack();
  readonly #logger: Logger;

  constructor({ logger }: Pick<ServiceParts, "logger">) {
    this.#logger = logger;
  }

  /** Closes a part at the end that is being opened. Returns the same promise, for its failure. */
  opening<Part extends { close(): Promise<void> } | undefined>(opening: Promise<Part>): Promise<Part> {
    const opened = opening.catch(() => undefined);
    this.#stack.defer(async () => await (await opened)?.close());
    return opening;
  }

  defer(close: () => void | Promise<void>): void {
    this.#stack.defer(close);
  }

  /** Logs the address of a listener, if there is one, and closes it at the end. */
  listener(listener: HttpPort | undefined, purpose: string): void {
    if (listener === undefined) return;
    this.#stack.defer(() => listener.close(0));
    this.#logger.info(`Listening for ${purpose} on '${addressOf(listener)}'`, {}, "warning");
  }

  /** Closes everything, the last part first. */
  close(): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

/** Stops the service on the signal: health fails immediately, `close` follows after the delay for load balancers. */
export async function stopOn(
  signal: AbortSignal,
  parts: ServiceParts,
  { drain, close }: { readonly drain: () => void; readonly close: () => Promise<void> },
): Promise<void> {
  const { health, logger, clock, settings } = parts;
  await aborted(signal);
  health.set("sigterm", false, "the service is stopping");
  drain();
  logger.info("Stopping", {}, "warning");
  const delayed = new Promise<void>((resolve) => void clock.after(settings.SHUTDOWN_DELAY, resolve));
  await Promise.all([delayed, reportState("STOPPING=1", parts)]);
  await close();
  logger.info("Stopped", {}, "warning");
}

import { aborted } from "../base/wait.ts";
import { hostPort } from "../base/host_port.ts";
import type { HttpListener } from "../http/listen.ts";
import type { ServiceParts } from "./parts.ts";

/** The part of a service that was not asked for. */
export const NOT_OPENED = { close: () => Promise.resolve() } as const;

/** Where a listener is: `host:port`. */
export function addressOf({ hostname, port }: Pick<HttpListener, "hostname" | "port">): string {
  return hostPort({ host: hostname, port });
}

/** What a service has opened; closed in the opposite order when it stops or when it cannot start. */
export class OpenedParts {
  readonly #stack = new AsyncDisposableStack();
  readonly #parts: Pick<ServiceParts, "logger">;

  constructor(parts: Pick<ServiceParts, "logger">) {
    this.#parts = parts;
  }

  /** Closes at the end what is being opened. Whoever awaits the promise that this returns learns when that fails. */
  opening<Part extends { close(): Promise<void> }>(opening: Promise<Part>): Promise<Part> {
    const opened = opening.catch(() => undefined);
    this.#stack.defer(async () => await (await opened)?.close());
    return opening;
  }

  /** Runs `close` at the end. */
  defer(close: () => void | Promise<void>): void {
    this.#stack.defer(close);
  }

  /** Logs where a port is and closes it at the end; does nothing for one that was not asked for. */
  listener(listener: HttpListener | undefined, purpose: string): void {
    if (listener === undefined) return;
    this.#stack.defer(() => listener.close(0));
    this.#parts.logger.warning(`Listening for ${purpose} on '${addressOf(listener)}'`);
  }

  /** Closes everything, the last part first. */
  close(): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

/**
 * Waits for the signal and stops the service: health fails immediately, and after the delay that load balancers need
 * `close` is called.
 */
export async function stopOn(
  signal: AbortSignal,
  { health, logger, clock, settings }: ServiceParts,
  { drain, close }: { readonly drain: () => void; readonly close: () => Promise<void> },
): Promise<void> {
  await aborted(signal);
  health.set("sigterm", false, "the service is stopping");
  drain();
  logger.warning("Stopping");
  const { promise, resolve } = Promise.withResolvers<void>();
  clock.after(settings.SHUTDOWN_DELAY, resolve);
  await promise;
  await close();
  logger.warning("Stopped");
}

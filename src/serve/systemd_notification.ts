import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { settledWithin } from "../base/wait.ts";
import type { ServiceParts } from "./parts.ts";

/** A state of the protocol of systemd. */
type ManagerState = "READY=1" | "STOPPING=1";

/** The manager reads its socket continuously; a longer wait would only delay the start or the stop. */
const TIMEOUT_MS = 1_000;

/** Reports a state to the service manager that started this process, such as systemd with `Type=notify`, if one did. */
export async function reportState(
  state: ManagerState,
  { settings, logger, clock }: Pick<ServiceParts, "settings" | "logger" | "clock">,
): Promise<void> {
  const socket = settings.NOTIFY_SOCKET;
  if (socket === undefined) return;
  try {
    await sendDatagram(socket, state, clock);
  } catch (error) {
    logger.warning("Cannot report to the service manager", { socket, state, reason: errorText(error) });
  }
}

/** Sends one datagram to a unix socket. Deno can send from a socket with a path only. */
async function sendDatagram(socket: string, text: string, clock: Clock): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_notify_" });
  try {
    using cleanup = new DisposableStack();
    const sender = cleanup.adopt(
      Deno.listenDatagram({ transport: "unixpacket", path: join(folder, "socket") }),
      (socket) => socket.close(),
    );
    // A name that begins with @ is in the abstract namespace of Linux.
    const sending = sender.send(new TextEncoder().encode(text), {
      transport: "unixpacket",
      path: socket.replace(/^@/, "\0"),
    });
    if (!await settledWithin(sending, TIMEOUT_MS, clock)) throw new Error("timed out");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

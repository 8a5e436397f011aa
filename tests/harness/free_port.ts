import { join } from "node:path";
import { until } from "./until.ts";

/** The folder with a file for each port that the run has given away; the test task sets it for all of its processes. */
export const PORTS_VARIABLE = "WEIR_TEST_PORTS";

/** Below the ports that systems give to clients and to servers that ask for any: no other program gets one by chance. */
const FIRST_PORT = 10_000;
const PORTS = 22_000;
const MAX_TRIES = 1_000;
const EVERY_INTERFACE = ["0.0.0.0", "::"];
/** The sockets of every interface, on Linux. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

const given = new Set<number>();

/** A TCP port on which nothing listens, on any interface; no other test of the run is given the same one. */
export function freePort(): number {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (isReserved(port) && isFree(port)) return port;
  }
  throw new Error(`Cannot find a free port: ${MAX_TRIES} from ${FIRST_PORT} on are in use or given away`);
}

/**
 * Waits until nothing listens on the port of a server that was closed: a process that another thread was starting has a
 * copy of the listener until it executes its program.
 */
export async function untilFree(port: number): Promise<void> {
  await until(`port ${port} to be free`, () => isFree(port), { intervalMs: 1 });
}

/** Creating a file succeeds once, whichever process of the run does it. */
function isReserved(port: number): boolean {
  const folder = Deno.env.get(PORTS_VARIABLE);
  if (folder === undefined) return !given.has(port) && given.add(port).has(port);
  try {
    Deno.openSync(join(folder, String(port)), { createNew: true, write: true }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
}

/** To listen for a moment could leave a copy of that listener in a process that is being started. */
function isFree(port: number): boolean {
  if (Deno.build.os !== "linux") return EVERY_INTERFACE.every((hostname) => canListen(hostname, port));
  const digits = port.toString(16).toUpperCase().padStart(4, "0");
  // The local address, the remote one, and the state LISTEN.
  const listener = new RegExp(`^ *\\d+: \\w+:${digits} \\w+:0000 0A `, "m");
  return !TABLES.some((table) => listener.test(readTable(table)));
}

function readTable(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    // A machine without IPv6.
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

function canListen(hostname: string, port: number): boolean {
  try {
    Deno.listen({ hostname, port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    // A machine without IPv6.
    if (hostname !== "0.0.0.0") return true;
    throw error;
  }
}

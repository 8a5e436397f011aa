/** Below the ports that systems give to clients and to servers that ask for any: nobody else gets one of these by chance. */
const FIRST_PORT = 10_000;
const PORTS = 22_000;
const MAX_TRIES = 100;

/** A TCP port of the loopback address that nobody listened on a moment ago, and that no other test is likely to pick. */
export function freePort(): number {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  throw new Error(
    `Cannot find a free port: ${MAX_TRIES} between ${FIRST_PORT} and ${FIRST_PORT + PORTS} are in use`,
  );
}

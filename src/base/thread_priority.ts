import os from "node:os";

/** How much the calling thread gives way, as `nice` has it. */
const NICENESS = 10;

/**
 * Lets the calling thread give way to the others of the process where a core is short: what a worker does must not
 * hold up decisions. Answers whether it could; a process may lack the permission, and not every system can.
 */
export function giveWay(): boolean {
  // 0 means the whole process on other systems.
  if (Deno.build.os !== "linux") return false;
  try {
    os.setPriority(0, NICENESS);
    return true;
  } catch {
    return false;
  }
}

import os from "node:os";

/** Priority decrement of a thread whose work can wait, as in `nice`. */
const NICENESS = 10;

/**
 * Lowers the priority of the calling thread, so that a worker does not delay decisions; false where that is impossible.
 */
export function lowerPriority(niceness = NICENESS): boolean {
  // 0 means the whole process on other systems.
  if (Deno.build.os !== "linux") return false;
  try {
    os.setPriority(0, niceness);
    return true;
  } catch {
    return false;
  }
}

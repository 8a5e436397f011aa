import { outputOf } from "./child_process.ts";

const KIB = 1_024;
const MB = 1_000_000;

/** Clock ticks in a second, the unit of `/proc`. */
export async function clockTicks(): Promise<number> {
  return Number(await outputOf("getconf", ["CLK_TCK"]));
}

/** CPU seconds, of user and system, that the process used up to now. */
export async function cpuSeconds(pid: number, ticksPerSecond: number): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  // The second field is the name in parentheses and may hold anything; the third comes after the last of them.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Resident memory of the process in MB (10^6 bytes). */
export async function residentMb(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const size = /^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1];
  if (size === undefined) throw new Error(`Cannot read memory of process "${pid}": it has no VmRSS`);
  return Number(size) * KIB / MB;
}

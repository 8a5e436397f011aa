/** A process and all that it started, and they in turn, the first one first; alone where the system does not tell. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)];
}

/** Ends processes without asking; those that have ended by themselves are left alone. */
export function endProcesses(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      Deno.kill(pid, "SIGKILL");
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

function childrenOf(pid: number): number[] {
  try {
    // Each thread has those that it started.
    return Array.from(Deno.readDirSync(`/proc/${pid}/task`)).flatMap(({ name }) => {
      const text = Deno.readTextFileSync(`/proc/${pid}/task/${name}/children`).trim();
      return text === "" ? [] : text.split(" ").map(Number);
    });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

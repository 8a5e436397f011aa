/** CPU ticks of each worker thread of a process. */
async function workerTicks(pid: number): Promise<Map<string, number>> {
  const ticks = new Map<string, number>();
  for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
    // A thread may end at any time.
    const stat = await Deno.readTextFile(`/proc/${pid}/task/${name}/stat`).catch(() => "");
    const end = stat.lastIndexOf(")");
    if (!stat.slice(stat.indexOf("(") + 1, end).startsWith("worker-")) continue;
    const fields = stat.slice(end + 2).split(" ");
    ticks.set(name, Number(fields[11]) + Number(fields[12]));
  }
  return ticks;
}

/** The result returns the share of the less busy one of the two busiest worker threads, from 0 to 0.5, since this call. */
export async function watchWorkerShare(pid: number): Promise<() => Promise<number>> {
  const before = await workerTicks(pid);
  return async () => {
    const used = [...await workerTicks(pid)].map(([thread, ticks]) => ticks - (before.get(thread) ?? 0));
    const [first = 0, second = 0] = used.sort((a, b) => b - a);
    return second / (first + second);
  };
}

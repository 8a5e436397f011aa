/** Pause between two looks. */
const LOOK_MS = 1;
const REPORT_MS = 100;

/** Milliseconds that the calling thread was on a CPU; updated by the kernel every few milliseconds. */
function threadCpuMs(file: Deno.FsFile, buffer: Uint8Array): number {
  file.seekSync(0, Deno.SeekMode.Start);
  const length = file.readSync(buffer) ?? 0;
  const [nanoseconds] = new TextDecoder().decode(buffer.subarray(0, length)).split(" ");
  return Number(nanoseconds) / 1e6;
}

/**
 * Prints the longest slice of this thread again and again: the time between two turns of its event loop, without the
 * time in which other programs had the CPU.
 */
function watchSlices(): void {
  const file = Deno.openSync("/proc/thread-self/schedstat");
  const buffer = new Uint8Array(100);
  let [lookedAt, cpuMs, reportedAt, longestMs] = [performance.now(), threadCpuMs(file, buffer), 0, 0];
  const look = () => {
    const [now, cpuNowMs] = [performance.now(), threadCpuMs(file, buffer)];
    longestMs = Math.max(longestMs, Math.min(now - lookedAt - LOOK_MS, cpuNowMs - cpuMs));
    [lookedAt, cpuMs] = [now, cpuNowMs];
    if (now - reportedAt >= REPORT_MS) {
      Deno.stdout.writeSync(new TextEncoder().encode(`longest slice: ${longestMs.toFixed(2)} ms\n`));
      [reportedAt, longestMs] = [now, 0];
    }
    Deno.unrefTimer(setTimeout(look, LOOK_MS));
  };
  look();
}

// Loaded before Weir by `--preload`, also in its workers.
if (!("WorkerGlobalScope" in globalThis)) watchSlices();

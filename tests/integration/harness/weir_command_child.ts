import { startWeir } from "../../harness/weir_process.ts";

/** Starts Weir in each way that tests do, in its own process: the environment belongs to all tests of a process. */
if (import.meta.main) {
  // A Weir that is to fail is never the executable.
  for (const options of [{}, { faults: {} }]) {
    await using weir = await startWeir(options);
    console.log(await (await fetch(`http://${weir.httpAddress}/livez`)).text(), await weir.stop());
  }
}

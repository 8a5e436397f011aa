import { startKilledWeir } from "../../harness/start_killed_weir.ts";
import { startWeir } from "../../harness/weir_process.ts";

/** Starts Weir in each way that tests do, in a process of its own: the environment belongs to all tests of a process. */
if (import.meta.main) {
  const settings = { PORT: "0" };
  for (
    const start of [
      () => startWeir(),
      () => startKilledWeir({ rules: {}, settings }),
      // A Weir that is to fail is never the executable.
      () => startKilledWeir({ rules: {}, settings, faults: {} }),
    ]
  ) {
    await using weir = await start();
    console.log(await (await fetch(`http://${weir.httpAddress}/livez`)).text(), await weir.stop());
  }
}

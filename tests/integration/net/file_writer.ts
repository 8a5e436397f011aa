/** Opens, writes and closes a file without a pause until it is ended; posts the first error. */
import { setImmediate } from "node:timers/promises";

const path = await Deno.makeTempFile({ prefix: "weir_" });
try {
  for (;;) {
    for (let count = 0; count < 200; count++) {
      using file = Deno.openSync(path, { write: true });
      file.writeSync(new Uint8Array(1));
      file.writeSync(new Uint8Array(1));
    }
    (globalThis as unknown as Worker).postMessage("");
    await setImmediate();
  }
} catch (error) {
  (globalThis as unknown as Worker).postMessage(String(error));
}

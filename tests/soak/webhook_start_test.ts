import { endEarly } from "../harness/webhook_early_end.ts";
import { bySize } from "./soak_options.ts";

const ROUNDS = bySize({ short: 1, full: 20 });
const CALLS = bySize({ short: [0, 4], full: [0, 4, 16, 64] });

for (const calls of CALLS) {
  Deno.test(`SIGTERM while the thread of webhooks starts, ${calls} calls after the ports opened`, async () => {
    for (let round = 0; round < ROUNDS; round++) await endEarly(calls);
  });
}

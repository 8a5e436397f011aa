/** Weir as `main.ts serve` runs it, but for faults that its only argument names in JSON. */
import { serve } from "../../main.ts";
import { systemClock } from "../../src/base/clock.ts";
import { readSettings } from "../../src/settings/read_settings.ts";
import { standardOutput } from "../../src/base/standard_streams.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { guardProcess } from "../../src/telemetry/process_guard.ts";
import type { FaultMessage } from "./killed_webhook_worker.ts";
import { shiftWallClock } from "./fake_clock.ts";
import type { WebhookFaults } from "./webhook_faults.ts";

const faults: WebhookFaults = JSON.parse(Deno.args[0] ?? "{}");
shiftWallClock(faults.wallAheadMs);
const { settings } = readSettings(Deno.env.toObject());
const logger = createLogger({
  level: settings.LOG_LEVEL,
  format: settings.LOG_FORMAT,
  clock: systemClock,
  write: standardOutput.stderr,
});
guardProcess({ logger, clock: systemClock, onUnexpected: () => Deno.exit(3) });

const stop = new AbortController();
Deno.addSignalListener("SIGTERM", () => stop.abort());

const running = await serve(settings, stop.signal, {
  logger,
  createWebhookWorker: () => {
    const url = new URL("./killed_webhook_worker.ts", import.meta.url);
    const worker = new Worker(url, { type: "module", name: "webhooks" });
    worker.postMessage({ type: "faults", faults } satisfies FaultMessage);
    return worker;
  },
});
await running.stopped;
Deno.exit(0);

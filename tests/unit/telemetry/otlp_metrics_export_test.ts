import { assertEquals } from "#assert";
import { MetricsExport } from "../../../src/telemetry/otlp_metrics_export.ts";
import type { SendBatch } from "../../../src/telemetry/otlp_exporter.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { settledTurns } from "../../harness/until.ts";

/** An export with two batches in each read, and these answers to them; one without an answer waits. */
function exportWith(...answers: readonly boolean[]) {
  const [logger, sent] = [new RecordedLogger(), [] as number[]];
  let readAt = 0;
  const left = [...answers];
  const send: SendBatch = (batch) => {
    if (batch.signal === "METRICS") sent.push(batch.metrics.readAt);
    const answer = left.shift();
    return answer === undefined ? new Promise(() => {}) : Promise.resolve(answer);
  };
  const batch = () => ({ startedAt: 0, readAt: ++readAt, metrics: [] });
  const opened = new MetricsExport({ read: () => Promise.resolve([batch(), batch()]), send, logger });
  return { logger, opened, sent };
}

Deno.test("metrics export: one batch follows the other, and one export the other", async () => {
  const { opened, sent } = exportWith(true);
  opened.start();
  opened.start();
  await settledTurns();
  opened.start();
  await settledTurns();
  assertEquals(sent, [1, 2]);
});

Deno.test("metrics export: a rejected batch ends the export; the next one has all values", async () => {
  const { opened, sent } = exportWith(false, true, true);
  for (let round = 0; round < 2; round++) {
    opened.start();
    await settledTurns();
  }
  assertEquals(sent, [1, 3, 4]);
});

Deno.test("metrics export: the end exports once more, and an end without an answer is not awaited", async () => {
  const { opened, sent } = exportWith(true, true);
  await opened.finish();
  assertEquals(sent, [1, 2]);
  const finishing = opened.finish();
  await settledTurns();
  await opened.close();
  await finishing;
  assertEquals(sent, [1, 2, 3]);
});

Deno.test("metrics export: metrics that cannot be read are logged", async () => {
  const logger = new RecordedLogger();
  const read = () => Promise.reject(new Error("no rules"));
  const opened = new MetricsExport({ read, send: () => Promise.resolve(true), logger });
  await opened.finish();
  assertEquals(logger.lines.map(({ message }) => message), ["Cannot read the metrics to export"]);
});

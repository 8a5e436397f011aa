import { assertEquals } from "#assert";
import { withCallMetrics } from "../../../../src/grpc/grpc_service.ts";
import { call, callFields, cancel, content, headers, message } from "../../../harness/h2_peer.ts";
import { until } from "../../../harness/until.ts";
import { answer } from "../../../harness/connection_bed.ts";
import { EngineBed } from "../../../harness/engine_bed.ts";
import { Probe, probePath } from "../../../harness/probe.ts";

Deno.test("native engine: a call takes from when its request is whole to when its answer goes out, or its caller leaves", async () => {
  const probe = new Probe();
  const told: [string, number][] = [];
  const service = withCallMetrics(probe.service, (method) => ({
    started: () => {},
    ended: (ms) => void told.push([method, ms]),
  }));
  await using bed = await EngineBed.open({ services: [service] });
  await using client = await bed.connect();
  told.length = 0;
  // Its neighbour's call shows that what was sent before it is there.
  const arrived = () => bed.neighbour.echo().then(() => void told.pop());
  client.send(headers(1, callFields(probePath("Hold"))));
  await arrived();
  bed.clock.advance(30);
  client.send(content(1, message("slow"), true), call(3, probePath("Hold"), "left"));
  await until("both calls to run", () => probe.held.length === 2);
  bed.clock.advance(4.5);
  client.send(cancel(3), call(5, probePath("Echo"), "quick"));
  for (const line of answer(5, "quick")) await client.line(line);
  assertEquals(told.splice(0), [["Hold", 4.5], ["Echo", 0]]);
  bed.clock.advance(2);
  for (const reply of probe.held) reply("at last");
  for (const line of answer(1, "at last")) await client.line(line);
  assertEquals(told.splice(0), [["Hold", 6.5]]);
});

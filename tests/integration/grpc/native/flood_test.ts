import { FloodSource } from "../../../harness/h2_floods.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import { EngineBed } from "../../../harness/engine_bed.ts";
import { probePath } from "../../../harness/probe.ts";

Deno.test("flood: of a peer that was refused nothing more is read", async () => {
  await using bed = await EngineBed.open();
  await using peer = await bed.connect();
  const random = seededRandom(5);
  const source = new FloodSource(probePath("Echo"));
  const part = source.next(["WINDOW_UPDATE of the connection"], 10_000, random);
  for (let sent = 0; sent < 100; sent++) peer.send(part);
  await peer.line("GOAWAY 0 ENHANCE_YOUR_CALM");
  await bed.neighbour.echo();
  bed.clock.advance(2_000);
  await peer.end();
});

import { assertEquals } from "#assert";
import { WebhookFolder } from "./webhook_weir.ts";

/** Has a process end by SIGTERM while the thread of its webhook service starts, after so many calls of its open ports. */
export async function endEarly(calls: number): Promise<void> {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.start({}, { isAwaited: false });
  for (let called = 0; called < calls; called++) {
    await (await fetch(`http://${weir.httpAddress}/healthcheck`)).body?.cancel();
  }
  assertEquals(await weir.stop(), 0);
  assertEquals(weir.stderrLines.filter((line) => / level=error |panic/.test(line)), []);
}

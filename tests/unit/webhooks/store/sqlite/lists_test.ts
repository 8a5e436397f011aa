import { assertEquals } from "@std/assert";
import { allPages, audit, NOW } from "../../../../contract/webhook_store_bed.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { addAudit, listAudit } from "../../../../../src/webhooks/store/audit_log.ts";

Deno.test("a list since a time is right with more rows than are looked at for its beginning", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const rows = Array.from(
    { length: 10_500 },
    (_, index) => audit({ at: NOW + index, action: index % 5_000 === 0 ? "rare" : "often" }),
  );
  await Promise.all(rows.map((row) => store.write(addAudit, row)));
  const list = (since: number, event?: string) =>
    allPages((options) => store.read(listAudit, options), { limit: 3_000, since, event });
  for (
    const since of [NOW, NOW + 1, NOW + 499, NOW + 500, NOW + 501, NOW + 502, NOW + 10_499, NOW + 10_500]
  ) {
    assertEquals((await list(since)).length, 10_500 - (since - NOW));
  }
  assertEquals((await list(NOW + 1, "rare")).map(({ at }) => at - NOW), [10_000, 5_000]);
  assertEquals((await list(NOW + 600, "rare")).map(({ at }) => at - NOW), [10_000, 5_000]);
  await store.close();
});

import { assert, assertEquals } from "@std/assert";
import { removeFinished } from "../../../../../src/webhooks/store/retention.ts";
import { addEvent, DAY, NOW } from "../../../../contract/webhook_store_bed.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";

Deno.test("the used size of a file shrinks with what is removed, and its file does not", async () => {
  using folder = new StoreFolder();
  const store = await folder.open();
  const empty = await store.usedBytes();
  for (let n = 0; n < 20; n++) await addEvent(store, { body: new Uint8Array(20_000) });
  const [full, { bytes }] = [await store.usedBytes(), await store.metrics(NOW)];
  assert(full > empty + 400_000, `${empty}, ${full}`);
  assertEquals(await store.write(removeFinished, { before: NOW + DAY, now: NOW + DAY, max: 500 }), 20);
  const used = await store.usedBytes();
  assert(used < empty + 50_000, `${empty}, ${used}`);
  assert((await store.metrics(NOW)).bytes >= bytes);
  await store.close();
});

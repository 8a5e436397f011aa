import { assertEquals, assertRejects } from "#assert";
import { addEvent, NOW } from "../../../../contract/webhook_store_bed.ts";
import { StoreFolder } from "../../../../harness/sqlite_fixture.ts";
import { findEvent, listEvents } from "../../../../../src/webhooks/store/operations/events.ts";

for (const ending of ["", "-wal"]) {
  for (const isReplaced of [false, true]) {
    const state = isReplaced ? "replaced" : "deleted";
    Deno.test(`a store whose weir.db${ending} is ${state} refuses everything until it is back`, async () => {
      using folder = new StoreFolder();
      const store = await folder.open();
      const before = await addEvent(store);
      const file = `${folder.path}${ending}`;
      Deno.renameSync(file, `${file}.moved`);
      if (isReplaced) Deno.copyFileSync(`${file}.moved`, file);
      const refused = [
        () => addEvent(store),
        () => store.metrics(NOW),
        () => store.read(findEvent, before.id),
      ];
      for (const call of refused) {
        const error = await assertRejects(call);
        const text = `"${file}" was deleted or replaced; put the file that was opened back`;
        assertEquals(error.message, `Cannot use the store "${folder.path}": ${text}`);
      }
      Deno.renameSync(`${file}.moved`, file);
      assertEquals((await store.metrics(NOW)).bytes > 0, true);
      const after = await addEvent(store);
      await store.close();
      const again = await folder.open();
      const kept = await Promise.all([before, after].map(({ id }) => again.read(findEvent, id)));
      assertEquals(kept.map((event) => event?.id), [before.id, after.id]);
      assertEquals((await again.read(listEvents, { limit: 9 })).items.length, 2);
      await again.close();
    });
  }
}

import { assertEquals } from "#assert";
import { acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { createEventKey } from "../../src/webhooks/store/operations/events.ts";
import { type Identified, identifiersWith } from "../../src/webhooks/store/operations/identifiers.ts";
import { createTrigger } from "../../src/webhooks/store/operations/triggers.ts";
import {
  audit,
  eventKey,
  execution,
  key,
  NOW,
  signedTrigger,
  type StoreCases,
  trigger,
  triggerSecret,
} from "./webhook_store_bed.ts";

/** In order, with neighbours at the bounds of a prefix. */
const IDS = [
  "2a408521-ffff-4fff-bfff-ffffffffffff",
  "2a408522-0000-4000-8000-000000000000",
  "2a408522-2e64-4252-85b6-a125e9aea5da",
  "2a408522-2e64-4252-85b6-a125e9aea5db",
  "2a408522-ffff-4fff-bfff-ffffffffffff",
  "2a408523-0000-4000-8000-000000000000",
  "9f000000-0000-4000-8000-000000000000",
  "9f9fffff-ffff-4fff-bfff-ffffffffffff",
  "9fa00000-0000-4000-8000-000000000000",
] as const;

/** Texts, and the places of the identifiers that begin with them. */
const FOUND: Readonly<Record<string, readonly number[]>> = {
  "2a4085": [0, 1, 2, 3, 4, 5],
  "2a408522": [1, 2, 3, 4],
  "2a408522-": [1, 2, 3, 4],
  "2a408522-2": [2, 3],
  "2a408522-2e64-4252-85b6-a125e9aea5d": [2, 3],
  "2a408522-2e64-4252-85b6-a125e9aea5da": [2],
  "9f9": [7],
  "9f": [6, 7, 8],
  "9fa": [8],
  "2a408524": [],
  "2A408522": [],
  "2a40852-": [],
  "2a408522x": [],
  "2a408522%": [],
  "' OR ''='": [],
  "": [0, 1, 2, 3, 4, 5, 6, 7, 8],
};

/** Records by the first characters of their identifiers. */
export const IDENTIFIER_CASES: StoreCases = {
  "the identifiers that begin with a text": async (store) => {
    for (const id of IDS.toReversed()) await store.addEvent({ id });
    for (const [prefix, places] of Object.entries(FOUND)) {
      const found = await store.read(identifiersWith, "events", prefix, { max: 20 });
      assertEquals(found, places.map((place) => IDS[place] ?? ""), prefix);
    }
    assertEquals(await store.read(identifiersWith, "events", "2a4085", { max: 2 }), IDS.slice(0, 2));
  },

  "each kind of record is found by the first characters of its identifier, and no other kind": async (
    store,
  ) => {
    await store.saveVersion();
    const made = {
      endpoints: (await store.addEndpoint()).id,
      triggers: crypto.randomUUID(),
      keys: crypto.randomUUID(),
      secrets: crypto.randomUUID(),
      "event-keys": crypto.randomUUID(),
      events: (await store.addEvent()).id,
      deliveries: "",
      executions: crypto.randomUUID(),
    };
    const keyed = trigger({ id: made.triggers, keys: [key({ id: made.keys })] });
    await store.write(createTrigger, keyed, audit());
    await store.write(
      createTrigger,
      signedTrigger({ secrets: [triggerSecret({ id: made.secrets })] }),
      audit(),
    );
    await store.write(createEventKey, eventKey({ id: made["event-keys"] }), audit());
    await store.write(acceptExecution, execution({ id: made.executions }), { now: NOW });
    made.deliveries = (await store.read(listDeliveries, { limit: 1 })).items[0]?.id ?? "";
    for (const [records, id] of Object.entries(made)) {
      for (const other of Object.keys(made) as Identified[]) {
        const found = await store.read(identifiersWith, other, id.slice(0, 12), { max: 2 });
        assertEquals(found, other === records ? [id] : [], `${records} among ${other}`);
      }
    }
  },
};

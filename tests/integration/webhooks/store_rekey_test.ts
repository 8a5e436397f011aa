import { assert, assertEquals, assertRejects } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import type { Sealed } from "../../../src/webhooks/model/records.ts";
import { SecretBox } from "../../../src/webhooks/secrets/secret_box.ts";
import { listAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import {
  editEndpoint,
  findEndpoint,
  listEndpoints,
} from "../../../src/webhooks/store/operations/endpoints.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { type RekeyBox, rekeyStore } from "../../../src/webhooks/store/maintenance/rekey.ts";
import { createTrigger, listTriggers } from "../../../src/webhooks/store/operations/triggers.ts";
import type { WebhookStore } from "../../../src/webhooks/store/store.ts";
import {
  addEndpoint,
  audit,
  endpoint,
  NOW,
  secret,
  signedTrigger,
  triggerSecret,
} from "../../contract/webhook_store_bed.ts";
import { openStoreAt, postgres } from "../../harness/postgres_fixture.ts";
import { QUIET, StoreFolder } from "../../harness/sqlite_fixture.ts";
import { stores } from "../../harness/store_places.ts";

const key = (byte: number) => new Uint8Array(32).fill(byte);
const [OLD, NEW, OTHER] = [key(1), key(2), key(3)];
const box = (...keys: readonly Uint8Array[]) => SecretBox.open({ keys, logger: QUIET });
const ENDPOINTS = 7;
/** Two of each endpoint, and one of a trigger. */
const SECRETS = 2 * ENDPOINTS + 1;
const PORTION = { clock: systemClock, portion: 3 };

stores.test("rekey: all secrets get the first key, and open with it alone", async ({ address, open }) => {
  await using store = await open();
  await fill(store, await box(OLD));
  const [before, both] = [await box(OLD), await box(NEW, OLD)];
  assertEquals((await checkStore(address)).keys, { [before.keyId]: SECRETS });
  const { rekeyed, keys, problems } = await rekeyStore(address, both, PORTION);
  assertEquals(rekeyed, { endpoint_secret: ENDPOINTS, endpoint: ENDPOINTS, trigger_secret: 1 });
  assertEquals([keys, problems], [{ [both.keyId]: SECRETS }, []]);
  assertEquals((await checkStore(address)).keys, keys);
  assertEquals(await opened(store, await box(NEW)), expected());
  const { items } = await store.read(listAudit, { limit: 1 });
  assertEquals(items.map(({ actor, action, details }) => [actor, action, details]), [
    ["cli", "store.rekeyed", { keyId: both.keyId, secrets: rekeyed }],
  ]);
  // There is nothing left to do.
  const again = await rekeyStore(address, both, PORTION);
  assertEquals(again.rekeyed, { endpoint_secret: 0, endpoint: 0, trigger_secret: 0 });
  assertEquals((await store.read(listAudit, { limit: 99 })).items.length, ENDPOINTS + 2);
});

stores.test("rekey: the credentials of an endpoint get the first key, too", async ({ address, open }) => {
  await using store = await open();
  const [old, both] = [await box(OLD), await box(NEW, OLD)];
  const { id } = await addEndpoint(store, {
    headers: await old.seal("headers"),
    secrets: [],
    authentication: { type: "bearer" },
    sealedAuthentication: await old.seal("authentication"),
    tls: { subject: "CN=weir" },
    sealedTls: await old.seal("tls"),
  });
  const { rekeyed, keys } = await rekeyStore(address, both, PORTION);
  assertEquals(rekeyed, { endpoint_secret: 0, endpoint: 3, trigger_secret: 0 });
  assertEquals(keys, { [both.keyId]: 3 });
  const { sealedAuthentication, sealedTls } = await store.read(findEndpoint, id) ?? {};
  const fresh = await box(NEW);
  const texts = [sealedAuthentication, sealedTls].map((one) => one && fresh.unseal(one));
  assertEquals(await Promise.all(texts), ["authentication", "tls"]);
});

stores.test("rekey: an interrupted call is continued by the next one", async ({ address, open }) => {
  await using store = await open();
  await fill(store, await box(OLD));
  const both = await box(NEW, OLD);
  let left = 5;
  const ending: RekeyBox = {
    keyId: both.keyId,
    seal: (text) => both.seal(text),
    unseal: (sealed) => left-- > 0 ? both.unseal(sealed) : Promise.reject(new Error("it ends")),
  };
  const first = await rekeyStore(address, ending, PORTION);
  assertEquals(first.rekeyed, { endpoint_secret: 5, endpoint: 0, trigger_secret: 0 });
  assertEquals(first.problems, ["it ends"]);
  assertEquals(await opened(store, both), expected());
  const second = await rekeyStore(address, both, PORTION);
  assertEquals(second.rekeyed, { endpoint_secret: ENDPOINTS - 5, endpoint: ENDPOINTS, trigger_secret: 1 });
  assertEquals(await opened(store, await box(NEW)), expected());
});

stores.test("rekey: what a service changes meanwhile stays, and is found by the next call", async ({ address, open }) => {
  await using store = await open();
  await fill(store, await box(OLD));
  const [old, both] = [await box(OLD), await box(NEW, OLD)];
  const { items: [last] } = await store.read(listEndpoints, { limit: 1 });
  assert(last !== undefined);
  let isChanged = false;
  const changing: RekeyBox = {
    keyId: both.keyId,
    seal: (text) => both.seal(text),
    async unseal(sealed: Sealed) {
      const text = await both.unseal(sealed);
      // An instance that was not restarted yet encrypts with the old key.
      if (text === headersOf(ENDPOINTS - 1)) {
        isChanged = true;
        const headers = { names: ["x"], sealed: await old.seal("changed") };
        await store.write(editEndpoint, last.id, { headers }, { now: NOW, audit: audit() });
      }
      return text;
    },
  };
  const { rekeyed, keys } = await rekeyStore(address, changing, PORTION);
  assert(isChanged);
  assertEquals(rekeyed, { endpoint_secret: ENDPOINTS, endpoint: ENDPOINTS - 1, trigger_secret: 1 });
  assertEquals(keys[old.keyId], 1);
  assertEquals((await rekeyStore(address, both, PORTION)).keys, { [both.keyId]: SECRETS });
  assertEquals((await opened(store, await box(NEW))).at(-2)?.[1], "changed");
});

stores.test("rekey: secrets of a missing key stay, and the key is named once", async ({ address, open }) => {
  await using store = await open();
  await fill(store, await box(OTHER));
  const [other, both] = [await box(OTHER), await box(NEW, OLD)];
  const { rekeyed, keys, problems } = await rekeyStore(address, both, PORTION);
  assertEquals([rekeyed, keys], [
    { endpoint_secret: 0, endpoint: 0, trigger_secret: 0 },
    { [other.keyId]: SECRETS },
  ]);
  assertEquals(problems.length, 1);
  assert(problems[0]?.includes(`the key "${other.keyId}": it is not among the keys`), problems[0]);
  assertEquals(await opened(store, other), expected());
});

postgres.test("rekey postgres: it and the claims of services, which lock many endpoints, do not block each other", async (database) => {
  await using store = await openStoreAt(database.url());
  const [old, both, back] = [await box(OLD), await box(NEW, OLD), await box(OLD, NEW)];
  const ids = Array.from({ length: 100 }, (_, n) => `endpoint-${999 - n}`);
  for (const id of ids) await addEndpoint(store, { id, headers: await old.seal("x"), secrets: [] });
  let isDone = false;
  const requests = ids.map((endpointId) => ({ endpointId, max: 1 }));
  const options = { now: NOW, leaseUntil: NOW, newClaimId: () => crypto.randomUUID(), requests };
  const claiming = Array.from({ length: 3 }, async () => {
    while (!isDone) await store.claimDeliveries(options);
  });
  try {
    for (const to of [both, back, both, back]) {
      const { keys } = await rekeyStore(database.url(), to, { clock: systemClock });
      assertEquals(keys, { [to.keyId]: ids.length });
    }
  } finally {
    isDone = true;
    await Promise.all(claiming);
  }
});

Deno.test("rekey: the old ciphertext is not left in the files of a SQLite store", async () => {
  using folder = new StoreFolder();
  await using store = await folder.open();
  const marked = { keyId: "k0", bytes: new TextEncoder().encode("the-former-ciphertext-of-the-headers") };
  await addEndpoint(store, { headers: marked, secrets: [secret({ sealed: marked })] });
  const fresh = await box(NEW);
  const both: RekeyBox = {
    keyId: fresh.keyId,
    seal: (text) => fresh.seal(text),
    unseal: () => Promise.resolve("text"),
  };
  assertEquals((await rekeyStore(folder.path, both, PORTION)).keys, { [fresh.keyId]: 2 });
  const files = [folder.path, `${folder.path}-wal`].map((path) =>
    new TextDecoder("latin1").decode(Deno.readFileSync(path))
  );
  assertEquals(files.filter((text) => text.includes("the-former-ciphertext")), []);
});

Deno.test("rekey: there has to be a store", async () => {
  using folder = new StoreFolder();
  const fresh = await box(NEW);
  const empty = folder.file("empty.db");
  await Deno.writeTextFile(empty, "");
  const refused = [[folder.path, "there is no such file"], [empty, "it holds no store"]] as const;
  for (const [path, state] of refused) {
    const { message } = await assertRejects(() => rekeyStore(path, fresh, PORTION));
    assertEquals(message, `Cannot open the store "${path}": ${state}`);
  }
});

const headersOf = (index: number) => `headers ${index}`;

/** Adds endpoints and a signed trigger whose secrets a key encrypts. */
async function fill(store: WebhookStore, key: SecretBox): Promise<void> {
  for (let index = 0; index < ENDPOINTS; index++) {
    const sealed = await key.seal(`secret ${index}`);
    const { headers: _, ...part } = endpoint({ secrets: [secret({ sealed })] });
    await addEndpoint(store, { ...part, headers: await key.seal(headersOf(index)) });
  }
  const secrets = [triggerSecret({ sealed: await key.seal("of a trigger") })];
  await store.write(createTrigger, signedTrigger({ secrets }), audit());
}

/** The secret and the headers of each endpoint, and the secret of the trigger. */
async function opened(store: WebhookStore, key: SecretBox): Promise<readonly (readonly string[])[]> {
  const { items } = await store.read(listEndpoints, { limit: 99 });
  const triggers = (await store.read(listTriggers, { limit: 99 })).items;
  const sealed = [
    ...items.toReversed().map(({ secrets, headers }) => [secrets[0]?.sealed, headers]),
    ...triggers.map(({ secrets = [] }) => secrets.map((one) => one.sealed)),
  ];
  return await Promise.all(sealed.map(async (some) => {
    return await Promise.all(some.filter((one) => one !== undefined).map((one) => key.unseal(one)));
  }));
}

function expected(): readonly (readonly string[])[] {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, index) => [`secret ${index}`, headersOf(index)]);
  return [...endpoints, ["of a trigger"]];
}

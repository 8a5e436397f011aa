import { assertEquals } from "#assert";
import type { EndpointEdit } from "../../src/webhooks/model/records.ts";
import { audit, newId, NOW, secret, type StoreCases } from "./webhook_store_bed.ts";
import { deleteEndpoint, editEndpoint, findEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import {
  countSealed,
  replaceSealed,
  SEALED_COLUMNS,
  sealedByOthers,
  type SealedColumns,
} from "../../src/webhooks/store/sealed.ts";

const ALL = { after: 0, max: 100 };
const HEADERS = columnsOf("endpoint");
const SECRETS = columnsOf("endpoint_secret");
const seal = (keyId: string, byte: number) => ({ keyId, bytes: new Uint8Array([byte, byte]) });

/** The encrypted values of a store get another key. */
export const SEALED_CASES: StoreCases = {
  "encrypted values are found by their keys, in portions": async (store) => {
    const [one, two, three] = [seal("k1", 1), seal("k2", 2), seal("k1", 3)];
    for (const headers of [one, two, three, undefined]) {
      const secrets = [secret({ sealed: seal("k1", 9) })];
      await store.addEndpoint(
        headers === undefined ? { headerNames: [], headers, secrets } : { headers, secrets },
      );
    }
    assertEquals(await store.read(countSealed, SEALED_COLUMNS), { k1: 6, k2: 1 });
    const first = await store.read(sealedByOthers, HEADERS, "k2", { after: 0, max: 1 });
    const rest = await store.read(sealedByOthers, HEADERS, "k2", { after: first[0]?.seq ?? 0, max: 9 });
    assertEquals([...first, ...rest].map((row) => row.sealed), [one, three]);
    assertEquals(await store.read(sealedByOthers, HEADERS, "k9", ALL).then((rows) => rows.length), 3);
  },

  "credentials of an endpoint are kept, changed and removed, each by itself": async (store) => {
    const authentication = { type: "basic", user: "weir" } as const;
    const tls = { subject: "CN=weir", expiresAt: NOW, authorities: ["CN=a"] };
    const [one, two, three] = [seal("k1", 1), seal("k1", 2), seal("k2", 3)];
    const { id } = await store.addEndpoint({
      authentication,
      sealedAuthentication: one,
      tls,
      sealedTls: two,
    });
    const found = async () => {
      const endpoint = await (await store.another()).read(findEndpoint, id);
      return [
        endpoint?.authentication,
        endpoint?.sealedAuthentication,
        endpoint?.tls,
        endpoint?.sealedTls,
        endpoint?.headerNames,
      ];
    };
    const edit = (change: EndpointEdit) =>
      store.write(editEndpoint, id, change, { now: NOW, audit: audit() });
    assertEquals(await found(), [authentication, one, tls, two, ["x-one"]]);
    await edit({ description: "another" });
    assertEquals(await found(), [authentication, one, tls, two, ["x-one"]]);
    await edit({ authentication: { shown: { type: "bearer" }, sealed: three } });
    assertEquals(await found(), [{ type: "bearer" }, three, tls, two, ["x-one"]]);
    assertEquals((await store.read(countSealed, SEALED_COLUMNS))["k2"], 1);
    await edit({ tls: null });
    assertEquals(await found(), [{ type: "bearer" }, three, undefined, undefined, ["x-one"]]);
    await edit({ authentication: null, tls: { shown: tls, sealed: one } });
    assertEquals(await found(), [undefined, undefined, tls, one, ["x-one"]]);
  },

  "an encrypted value is replaced, unless another one has replaced it": async (store) => {
    const kept = await store.addEndpoint({
      headers: seal("k1", 1),
      secrets: [secret({ sealed: seal("k1", 1) })],
    });
    const changed = await store.addEndpoint({ headers: seal("k1", 2) });
    const deleted = await store.addEndpoint({ headers: seal("k1", 3) });
    const rows = await store.read(sealedByOthers, HEADERS, "k2", ALL);
    assertEquals(rows.length, 3);
    const headers = { names: ["x-one"], sealed: seal("k1", 4) };
    await store.write(editEndpoint, changed.id, { headers }, { now: NOW, audit: audit() });
    const removal = { now: NOW, audit: audit(), newId };
    await store.write(deleteEndpoint, deleted.id, removal);

    const changes = rows.map((before) => ({ before, after: seal("k2", 7) }));
    assertEquals(await store.write(replaceSealed, HEADERS, changes), 1);
    assertEquals(await store.write(replaceSealed, HEADERS, changes), 0);
    const found = [await store.read(findEndpoint, kept.id), await store.read(findEndpoint, changed.id)];
    assertEquals(found.map((one) => one?.headers), [seal("k2", 7), seal("k1", 4)]);

    const [before] = await store.read(sealedByOthers, SECRETS, "k2", ALL);
    const after = seal("k2", 8);
    assertEquals(
      await store.write(replaceSealed, SECRETS, before === undefined ? [] : [{ before, after }]),
      1,
    );
    assertEquals((await store.read(findEndpoint, kept.id))?.secrets.map(({ sealed }) => sealed), [after]);
  },
};

function columnsOf(table: string): SealedColumns {
  const columns = SEALED_COLUMNS.find((one) => one.table === table);
  if (columns === undefined) throw new Error(`Cannot find the encrypted columns of ${table}`);
  return columns;
}

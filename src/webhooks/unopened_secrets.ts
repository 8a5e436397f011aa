import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import type { Sealed } from "./records.ts";
import type { AdministrationStore } from "./store.ts";

const PAGE = 200;

/**
 * Says in the log which keys are missing for the secrets of the store. Without this a wrong key shows only when the
 * first delivery fails. The service starts nevertheless: what it takes in is kept until the key is there.
 */
export async function tellUnopenedSecrets(
  store: Pick<AdministrationStore, "listEndpoints">,
  secretBox: { unseal(sealed: Sealed): Promise<string> },
  logger: Logger,
): Promise<void> {
  for (const [keyId, { sealed, endpoints }] of await sealedByKey(store)) {
    try {
      await secretBox.unseal(sealed);
    } catch (error) {
      logger.error(errorText(error), { keyId, endpoints });
    }
  }
}

/** One secret for each key, and how many endpoints have secrets under it. */
async function sealedByKey(
  store: Pick<AdministrationStore, "listEndpoints">,
): Promise<ReadonlyMap<string, { readonly sealed: Sealed; readonly endpoints: number }>> {
  const found = new Map<string, { sealed: Sealed; endpoints: number }>();
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await store.listEndpoints({ limit: PAGE, cursor });
    for (const { secrets, headers } of items) {
      const all = [...secrets.map(({ sealed }) => sealed), ...headers === undefined ? [] : [headers]];
      for (const [keyId, sealed] of new Map(all.map((one) => [one.keyId, one]))) {
        found.set(keyId, { sealed, endpoints: (found.get(keyId)?.endpoints ?? 0) + 1 });
      }
    }
    cursor = nextCursor;
  } while (cursor !== undefined);
  return found;
}

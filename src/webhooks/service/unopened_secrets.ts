import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import type { Endpoint, Sealed, Trigger } from "../model/records.ts";
import { signingSecrets } from "../model/signing_secrets.ts";
import { listEndpoints } from "../store/operations/endpoints.ts";
import type { ListOptions, Page, WebhookStore } from "../store/store.ts";
import { listTriggers } from "../store/operations/triggers.ts";

/** Options of `UnopenedSecrets`. */
interface UnopenedSecretsOptions {
  readonly store: Pick<WebhookStore, "read">;
  readonly secretBox: {
    has(keyId: string): boolean;
    unseal(sealed: Sealed): Promise<string>;
    readonly madeKeyFile: string | undefined;
  };
  /** The time of all that is stored. */
  readonly clock: Clock;
  readonly logger: Logger;
}

const PAGE = 200;
/** The interval of looks for unreadable secrets. */
const LOOK_MS = 30_000;
const MAX_KEYS = 3;
/** A rotation without `activeIn` leaves the old secret in force for a day. */
const ADVICE = "add it to WEBHOOK_ENCRYPTION_KEY and restart";
const ENDPOINT_ADVICE =
  "give the endpoints other secrets (weir endpoints rotate ID --active-in 0) and set their headers, " +
  "authentication and certificates again";
const TRIGGER_ADVICE = "give the triggers their secrets again (weir triggers rotate ID --secret-file FILE)";

/**
 * Finds the secrets of the store whose key is missing: otherwise a wrong key would only show when the first delivery
 * fails. The service works nevertheless, and keeps what it accepts until the key is there.
 */
export class UnopenedSecrets {
  readonly #options: UnopenedSecretsOptions;
  #note: string | undefined;
  /** By the clock's `elapsed`. */
  #lookedAt = -Infinity;

  constructor(options: UnopenedSecretsOptions) {
    this.#options = options;
  }

  /** Looks for unreadable secrets and logs them. */
  async report(): Promise<void> {
    const { secretBox, logger } = this.#options;
    const { byKey, secrets } = await this.#look();
    const { madeKeyFile: file } = secretBox;
    if (file !== undefined && secrets > 0) {
      const text =
        "The key file was missing and a new one was created, but the store has secrets that only the " +
        "former key opens: add that key to WEBHOOK_ENCRYPTION_KEY and restart";
      logger.error(text, { file, secrets });
    }
    for (const [keyId, { sealed, endpoints, triggers }] of byKey) {
      await secretBox.unseal(sealed).catch((error: unknown) => {
        logger.error(errorText(error), { keyId, endpoints, triggers });
      });
    }
  }

  /** The note for the operator; undefined when every secret has its key. */
  async note(): Promise<string | undefined> {
    const isDue = this.#options.clock.elapsed() - this.#lookedAt >= LOOK_MS;
    if (this.#note !== undefined && isDue) await this.#look();
    return this.#note;
  }

  async #look(): Promise<Found> {
    const found = await find(this.#options);
    this.#lookedAt = this.#options.clock.elapsed();
    this.#note = noteOf(found, this.#options.secretBox);
    return found;
  }
}

/** The number of records with secrets. */
interface Owners {
  endpoints: number;
  triggers: number;
}

interface Found extends Readonly<Owners> {
  /** One secret for each key, and how many records have secrets under it. */
  readonly byKey: ReadonlyMap<string, Readonly<Owners> & { readonly sealed: Sealed }>;
  /** The number of secrets without a key; the records are those with such secrets. */
  readonly secrets: number;
}

async function find({ store, secretBox, clock }: UnopenedSecretsOptions): Promise<Found> {
  const byKey = new Map<string, Owners & { readonly sealed: Sealed }>();
  const missing = { secrets: 0, endpoints: 0, triggers: 0 };
  const now = clock.now();
  const note = (owner: keyof Owners, needed: readonly Sealed[]) => {
    for (const [keyId, sealed] of new Map(needed.map((one) => [one.keyId, one]))) {
      const known = byKey.get(keyId) ?? { endpoints: 0, triggers: 0 };
      byKey.set(keyId, { ...known, sealed, [owner]: known[owner] + 1 });
    }
    const unread = needed.filter(({ keyId }) => !secretBox.has(keyId)).length;
    missing.secrets += unread;
    if (unread > 0) missing[owner]++;
  };
  const endpoints = (options: ListOptions) => store.read(listEndpoints, options);
  for await (const endpoint of allOf(endpoints)) note("endpoints", neededOf(endpoint, now));
  const triggers = (options: ListOptions) => store.read(listTriggers, options);
  for await (const trigger of allOf(triggers)) note("triggers", secretsOf(trigger));
  return { byKey, ...missing };
}

async function* allOf<T>(list: (options: ListOptions) => Promise<Page<T>>): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, cursor });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function secretsOf({ secrets = [] }: Trigger): readonly Sealed[] {
  return secrets.map(({ sealed }) => sealed);
}

/** Secrets that deliveries have to read; a secret that was replaced is not part of it. */
function neededOf(endpoint: Endpoint, now: number): readonly Sealed[] {
  const { secrets, headers, sealedAuthentication, sealedTls } = endpoint;
  const signing = signingSecrets(endpoint, now);
  const active = secrets.findIndex((secret) => secret === signing[0]);
  const needed = secrets.filter((secret, index) => index <= active || signing.includes(secret));
  const others = [headers, sealedAuthentication, sealedTls].filter((sealed) => sealed !== undefined);
  return [...needed.map(({ sealed }) => sealed), ...others];
}

function noteOf(
  { byKey, secrets, endpoints, triggers }: Found,
  secretBox: UnopenedSecretsOptions["secretBox"],
): string | undefined {
  if (secrets === 0) return undefined;
  const keyIds = [...byKey.keys()].filter((keyId) => !secretBox.has(keyId));
  const named = keyIds.slice(0, MAX_KEYS).map((keyId) => `"${keyId}"`).join(", ");
  const more = keyIds.length > MAX_KEYS ? ` and ${keyIds.length - MAX_KEYS} more` : "";
  const made = secretBox.madeKeyFile !== undefined
    ? " and another one was created because the key file was missing"
    : "";
  const owners = [
    ...endpoints === 0 ? [] : [counted(endpoints, "endpoint")],
    ...triggers === 0 ? [] : [counted(triggers, "trigger")],
  ];
  const what = `${counted(secrets, "secret")} of ${owners.join(" and ")} cannot be read`;
  const advice = [
    ADVICE,
    ...endpoints === 0 ? [] : [ENDPOINT_ADVICE],
    ...triggers === 0 ? [] : [TRIGGER_ADVICE],
  ];
  return `${what}: the key ${named}${more} that encrypted them is missing${made}; ${advice.join(", or ")}`;
}

function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

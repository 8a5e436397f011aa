import { systemBell } from "../../threads/bell.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { chosenKeyFile } from "../secrets/key_file.ts";
import { SecretBox } from "../secrets/secret_box.ts";
import { StoreClock } from "../store/clock.ts";
import { DispatchLock } from "../store/sqlite/dispatch_lock.ts";
import { openSqliteStore } from "../store/sqlite/store.ts";
import type { PostgresLogin } from "../store/postgres/login.ts";
import type { WebhookStore } from "../store/store.ts";
import { WorkflowFiles } from "../workflows/files.ts";
import type { PostgresSettings, WebhookOptions } from "./message.ts";
import { DurationSamples } from "./metrics.ts";
import type { OutboundClients } from "./outbound_clients.ts";
import { WebhookService, type WebhookServiceParts } from "./service.ts";
import { UnopenedSecrets } from "./unopened_secrets.ts";

/** Options of `openWebhookService`. */
export interface WebhookOpening {
  readonly options: WebhookOptions;
  /** Asks the decision service. */
  readonly limit: LimitCall;
  /** The clock of this machine. */
  readonly clock: Clock;
  readonly logger: Logger;
  /** Replaces parts of the service, or adds some, such as who is notified of attempts. */
  readonly parts?: Partial<WebhookServiceParts> | undefined;
  /** Of the store, where a file has its address. */
  readonly login?: PostgresLogin | undefined;
  /** Set when a database file is opened; a test limits its size with them. */
  readonly pragmas?: readonly string[] | undefined;
}

/** The parts that depend on the kind of the store. */
interface OpenedStore {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly takeLock: WebhookServiceParts["takeLock"];
  readonly sharedStoreMetrics?: WebhookServiceParts["sharedStoreMetrics"];
  /** Path of the key created next to the store; absent where the settings have to name one. */
  readonly keyFile?: string | undefined;
}

type StoreOpening = Pick<WebhookOpening, "clock" | "logger" | "login" | "pragmas"> & {
  readonly onCommit: (elapsedMs: number) => void;
  readonly stack: AsyncDisposableStack;
};

/** Opens the store and everything around it; when it throws, what it has opened is closed. */
export async function openWebhookService(opening: WebhookOpening): Promise<WebhookService> {
  await using stack = new AsyncDisposableStack();
  const parts = await openParts(opening, stack);
  const opened = stack.move();
  return new WebhookService({ ...parts, close: () => opened.disposeAsync() });
}

async function openParts(opening: WebhookOpening, stack: AsyncDisposableStack): Promise<WebhookServiceParts> {
  const { options: { store, ...options }, limit, logger } = opening;
  const commitTimes = new DurationSamples();
  const storeOpening = { ...opening, stack, onCommit: (elapsedMs: number) => commitTimes.add(elapsedMs) };
  const { keyFile: ofStore, ...opened } = store.kind === "file"
    ? await openFileStore(store.path, storeOpening)
    : await openSharedStore(store, storeOpening);
  const keys = options.encryptionKeys.map((text) => Uint8Array.fromBase64(text));
  const named = options.encryptionKeyFile;
  const keyFile = await chosenKeyFile({ named, ofStore, hasKeys: keys.length > 0, logger });
  const secretBox = await SecretBox.open({ keys, keyFile, logger });
  const unopened = new UnopenedSecrets({ ...opened, secretBox, logger });
  await unopened.report();
  const clients = await openClients(opening, stack, { secretBox, storeClock: opened.clock });
  const workflows = new WorkflowFiles({
    folder: options.workflowDirectory,
    envNames: Object.keys(options.workflowEnv),
    bell: systemBell,
    clock: opening.clock,
    logger,
  });
  stack.defer(() => workflows.close());
  await workflows.start();
  const { maxInFlight, timeoutMs, version, maxRunning, retentionMs, disableAfterMs } = options;
  const { maxStoreBytes, maxBacklog, publicUrl, maxBodyBytes } = options;
  return {
    ...opened,
    secretBox,
    noteOfSecrets: () => unopened.note(),
    takeCommitTimes: () => commitTimes.take(),
    ...clients,
    workflows,
    limit,
    wallClock: opening.clock,
    random: Math.random,
    newId: () => crypto.randomUUID(),
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    logger,
    maxInFlight,
    timeoutMs,
    version,
    maxRunning,
    retentionMs,
    disableAfterMs,
    maxStoreBytes,
    maxBacklog,
    publicUrl,
    maxBodyBytes,
    env: onlySet(options.workflowEnv),
    ...opening.parts,
  };
}

/** Opens a database file: of the processes that have it open one does the work. */
async function openFileStore(path: string, { stack, ...opening }: StoreOpening): Promise<OpenedStore> {
  const store = await openSqliteStore({ ...opening, path });
  stack.defer(() => store.close());
  const takeLock = () => {
    const lock = DispatchLock.take(path);
    if (lock === undefined) return undefined;
    return { isSole: true, keep: () => lock.keep(), release: () => lock.release() };
  };
  return { store, clock: opening.clock, keyFile: `${path}.key`, takeLock };
}

/** Opens a PostgreSQL, where every process works, by the time of the database. */
async function openSharedStore(
  postgres: PostgresSettings,
  { clock: wallClock, logger, login, onCommit, stack }: StoreOpening,
): Promise<OpenedStore> {
  // Not needed with a file.
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  const clock = new StoreClock({ clock: wallClock, logger });
  const onConnected = () => clock.remeasure();
  const { credential, metrics } = login ?? {};
  const options = { ...postgres, login: credential, clock, logger, onCommit, onConnected };
  const store = await openPostgresStore(options);
  stack.defer(() => store.close());
  await clock.start(() => store.databaseTime());
  stack.defer(() => clock.close());
  const sharedStoreMetrics = () => ({
    retries: store.transactionRetries,
    wallAheadMs: clock.wallAheadMs,
    problem: clock.problem,
    logins: { ...metrics, refused: credential?.refused },
  });
  const takeLock = () => ({ isSole: false, keep: () => true, release: () => {} });
  return { store, clock, takeLock, sharedStoreMetrics };
}

/**
 * The outbound clients. Most services are idle when they begin: the clients are loaded by their first request, unless
 * the settings have values that they may reject.
 */
async function openClients(
  { options, clock }: WebhookOpening,
  stack: AsyncDisposableStack,
  { secretBox, storeClock }: { readonly secretBox: SecretBox; readonly storeClock: Clock },
) {
  let loading: Promise<OutboundClients> | undefined;
  const load = async () => {
    const { createOutboundClients } = await import("./outbound_clients.ts");
    return createOutboundClients({ options, clock, storeClock, secretBox });
  };
  const clients = () => loading ??= load();
  stack.defer(async () => await (await loading?.catch(() => undefined))?.close());
  if (options.caFile !== undefined || options.proxy !== undefined) await clients();
  return {
    sender: {
      send: async (...call: Parameters<OutboundClients["sender"]["send"]>) =>
        await (await clients()).sender.send(...call),
    },
    fetch: async (...call: Parameters<OutboundClients["fetch"]>) => await (await clients()).fetch(...call),
    providerFetch: async (...call: Parameters<OutboundClients["providerFetch"]>) =>
      await (await clients()).providerFetch(...call),
    check: async (...call: Parameters<OutboundClients["check"]>) => await (await clients()).check(...call),
    urlProblem: async (url: string) => await (await clients()).urlProblem(url),
  };
}

/** Leaves out unset variables: a workflow that reads one has to fail. */
function onlySet(variables: WebhookOptions["workflowEnv"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
  );
}

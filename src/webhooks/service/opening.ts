import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { SecretBox } from "../secrets/secret_box.ts";
import { chosenKeyFile } from "../secrets/key_file.ts";
import type { WebhookStore } from "../store/store.ts";
import { type OpenedStore, openFileStore, openSharedStore } from "./store_opening.ts";
import type { LimitCall } from "../model/limit_call.ts";
import { UnopenedSecrets } from "./unopened_secrets.ts";
import type { WebhookOptions } from "./message.ts";
import type { WebhookOutside, WebhookOutsideOptions } from "./outside.ts";
import { WebhookService, type WebhookServiceParts } from "./service.ts";
import { WorkflowFiles } from "../workflows/files.ts";

/** What a webhook service is opened with. */
export interface WebhookOpening {
  readonly options: WebhookOptions;
  /** Asks the decision service. */
  readonly limit: LimitCall;
  /** The clock of this machine. */
  readonly clock: Clock;
  readonly logger: Logger;
  /** What is to be otherwise, such as who is told of attempts. */
  readonly parts?: Partial<WebhookServiceParts> | undefined;
  /** Said to a database file when it is opened; a test makes it small with them. */
  readonly pragmas?: readonly string[] | undefined;
}

/** Commits whose time is kept between two takes. */
const MAX_COMMIT_TIMES = 10_000;

/** Opens the store and everything around it; throws when one of them cannot be had, and lets go of the others. */
export async function openWebhookService(opening: WebhookOpening): Promise<WebhookService> {
  const stack = new AsyncDisposableStack();
  try {
    const service = new WebhookService(await openParts(opening, stack));
    stack.move();
    return service;
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function openParts(opening: WebhookOpening, stack: AsyncDisposableStack): Promise<WebhookServiceParts> {
  const { options, limit, logger } = opening;
  const commitTimes = new TakenTimes();
  const opened = await openStore(opening, (elapsedMs) => commitTimes.add(elapsedMs));
  const store = closingWith(opened.store, opened.closed);
  stack.defer(() => store.close());
  const keys = options.encryptionKeys.map((text) => Uint8Array.fromBase64(text));
  const [named, ofStore] = [options.encryptionKeyFile, opened.keyFile];
  const keyFile = await chosenKeyFile({ named, ofStore, hasKeys: keys.length > 0, logger });
  const secretBox = await SecretBox.open({ keys, keyFile, logger });
  const unopened = new UnopenedSecrets({ store, secretBox, clock: opened.clock, logger });
  await unopened.tell();
  const outside = await openOutside(opening, stack, { secretBox, storeClock: opened.clock });
  const workflows = await openWorkflows(opening, stack);
  return {
    store: closingWith(store, [outside, workflows]),
    secretBox,
    noteOfSecrets: () => unopened.note(),
    takeLock: opened.takeLock,
    takeCommitTimes: () => commitTimes.take(),
    sharedStoreMetrics: opened.sharedStoreMetrics,
    ...outside,
    workflows,
    limit,
    clock: opened.clock,
    wallClock: opening.clock,
    random: Math.random,
    newId: () => crypto.randomUUID(),
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    logger,
    maxInFlight: options.maxInFlight,
    timeoutMs: options.timeoutMs,
    version: options.version,
    env: onlySet(options.workflowEnv),
    maxRunning: options.maxRunning,
    retentionMs: options.retentionMs,
    ...opening.parts,
  };
}

async function openStore(
  { options: { store }, clock, logger, pragmas }: WebhookOpening,
  onCommit: (elapsedMs: number) => void,
): Promise<OpenedStore> {
  const opening = { clock, logger, pragmas, onCommit };
  return await (store.kind === "file" ? openFileStore(store.path, opening) : openSharedStore(store, opening));
}

/**
 * What speaks to the world. Most services are idle when they begin: it is loaded by the first that is sent, unless it
 * may be refused for what the settings say.
 */
async function openOutside(
  { options, clock }: WebhookOpening,
  stack: AsyncDisposableStack,
  { secretBox, storeClock }: { readonly secretBox: SecretBox; readonly storeClock: Clock },
) {
  let made: Promise<WebhookOutside> | undefined;
  const outside = () => made ??= makeOutside({ options, clock, storeClock, secretBox });
  const close = async () => await (await made?.catch(() => undefined))?.close();
  stack.defer(close);
  if (options.caFile !== undefined || options.proxy !== undefined) await outside();
  const sender: WebhookOutside["sender"] = {
    send: async (request, sending) => await (await outside()).sender.send(request, sending),
  };
  const fetch: WebhookOutside["fetch"] = async (input, init) => await (await outside()).fetch(input, init);
  const check: WebhookOutside["check"] = async (endpoint) => await (await outside()).check(endpoint);
  const urlProblem: WebhookOutside["urlProblem"] = async (url) => await (await outside()).urlProblem(url);
  return { sender, fetch, check, urlProblem, close };
}

async function makeOutside(options: WebhookOutsideOptions): Promise<WebhookOutside> {
  const { createOutside } = await import("./outside.ts");
  return createOutside(options);
}

/** A variable that is not set is no empty text: a workflow that reads it has to fail. */
function onlySet(variables: WebhookOptions["workflowEnv"]): Record<string, string> {
  const set = Object.entries(variables).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]]
  );
  return Object.fromEntries(set);
}

async function openWorkflows(
  { options, clock, logger }: WebhookOpening,
  stack: AsyncDisposableStack,
): Promise<WorkflowFiles> {
  const envNames = Object.keys(options.workflowEnv);
  const files = new WorkflowFiles({ folder: options.workflowDirectory, envNames, clock, logger });
  stack.defer(() => files.close());
  await files.start();
  return files;
}

/** The store, which takes these with it when it is closed: it is what the service closes last. */
function closingWith(store: WebhookStore, others: readonly { close(): Promise<void> }[]): WebhookStore {
  const close = store.close.bind(store);
  return Object.assign(store, {
    async close() {
      await Promise.all(others.map((other) => other.close()));
      await close();
    },
  });
}

/** Durations between two takes. */
class TakenTimes {
  #times: number[] = [];

  add(ms: number): void {
    if (this.#times.length < MAX_COMMIT_TIMES) this.#times.push(ms);
  }

  take(): readonly number[] {
    const times = this.#times;
    this.#times = [];
    return times;
  }
}

import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type {
  AuditEntry,
  Endpoint,
  EndpointEdit,
  EventKey,
  Trigger,
  TriggerEdit,
  WorkflowVersion,
} from "./records.ts";
import { migrate, schemaVersion } from "./sqlite_schema.ts";
import { clockSetBack } from "./sqlite_store_clock.ts";
import * as accept from "./sqlite_store_accept.ts";
import { type CommitFigures, GroupCommit } from "./sqlite_store_commits.ts";
import { type ConnectionOptions, type Row, SqliteConnection } from "./sqlite_store_connection.ts";
import * as deliveries from "./sqlite_store_deliveries.ts";
import * as endpoints from "./sqlite_store_endpoints.ts";
import * as executions from "./sqlite_store_executions.ts";
import { type ListName, listPage } from "./sqlite_store_lists.ts";
import * as records from "./sqlite_store_records.ts";
import { auditOf, deliveryOf, eventKeyOf, eventOf } from "./sqlite_store_rows.ts";
import { clearRemoved, isAnythingRemoved } from "./sqlite_store_removals.ts";
import { removeFinished } from "./sqlite_store_retention.ts";
import { addAudit } from "./sqlite_store_trail.ts";
import * as triggers from "./sqlite_store_triggers.ts";
import type {
  AdministrationStore,
  DeliveryStore,
  ExecutionStore,
  ListOptions,
  NewEvent,
  NewExecution,
  Page,
  WebhookStore,
} from "./store.ts";

/** How a store is opened. */
export interface SqliteStoreOptions extends ConnectionOptions {
  /** The database file; made with its folder when missing. */
  readonly path: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Names the deliveries of an event, and the entries of the audit log that the store writes itself. */
  readonly newId?: (() => string) | undefined;
  /** How many operations may wait for a commit; 50,000 when absent. */
  readonly maxWaiting?: number | undefined;
  /** Told of each commit: how long it took, and how many operations it held. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

/** What a SQLite store has beside the port. */
export interface SqliteExtras {
  /** The version of its schema. */
  readonly schemaVersion: number;
  /** How many operations wait for a commit. */
  readonly waiting: number;
  /** What the commits have cost so far. */
  readonly commits: CommitFigures;
}

const MAX_WAITING = 50_000;

/** Opens the store in a database file, whose tables are made or brought up to date. */
// deno-lint-ignore require-await -- a failure is a rejection, as it is for stores behind a network
export async function openSqliteStore(options: SqliteStoreOptions): Promise<WebhookStore & SqliteExtras> {
  const connection = new SqliteConnection(options.path, options);
  try {
    const before = schemaVersion(connection);
    const version = migrate(connection);
    if (before !== version) {
      options.logger.info("store brought up to date", { path: options.path, from: before, to: version });
    }
    return new SqliteStore(connection, options, version);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** The port over one connection: each operation is passed on, to a gathered commit or to a snapshot. */
class SqliteStore implements WebhookStore, SqliteExtras {
  readonly schemaVersion: number;
  readonly #connection: SqliteConnection;
  readonly #commits: GroupCommit;
  readonly #clock: Clock;
  readonly #faults: deliveries.RowFaults;
  readonly #newId: () => string;

  constructor(connection: SqliteConnection, options: SqliteStoreOptions, version: number) {
    this.schemaVersion = version;
    this.#connection = connection;
    this.#commits = new GroupCommit(connection, {
      ...options,
      maxWaiting: options.maxWaiting ?? MAX_WAITING,
    });
    this.#clock = options.clock;
    this.#newId = options.newId ?? (() => crypto.randomUUID());
    this.#faults = { newId: this.#newId, logger: options.logger };
  }

  get waiting() {
    return this.#commits.waiting;
  }
  get commits() {
    return this.#commits.figures;
  }

  findTriggerKey = (hash: string) => this.#read((db) => triggers.findTriggerKey(db, hash));
  findEventKey = (hash: string) => this.#read((db) => triggers.findEventKey(db, hash));
  findIdempotency = (scope: string, key: string, now: number) =>
    this.#read((db) => accept.findIdempotency(db, scope, key, now));
  acceptExecution = (execution: NewExecution, options: accept.AcceptOptions) =>
    this.#write((db) => accept.acceptExecution(db, execution, options));
  acceptEvent = (event: NewEvent, options: accept.AcceptOptions) =>
    this.#write((db) => accept.acceptEvent(db, event, { ...options, newId: this.#newId }));

  dueEndpoints = (now: number) => this.#read((db) => deliveries.dueEndpoints(db, now));
  claimDeliveries = (options: Parameters<DeliveryStore["claimDeliveries"]>[0]) =>
    this.#write((db) => deliveries.claimDeliveries(db, { ...options, ...this.#faults }));
  renewClaims = (claimIds: readonly string[], leaseUntil: number) =>
    this.#write((db) => deliveries.renewClaims(db, claimIds, leaseUntil));
  beginAttempt = (options: Parameters<DeliveryStore["beginAttempt"]>[0]) =>
    this.#write((db) => deliveries.beginAttempt(db, options));
  finishAttempt = (options: Parameters<DeliveryStore["finishAttempt"]>[0]) =>
    this.#write((db) => deliveries.finishAttempt(db, options));
  voidClaims = (options: Parameters<DeliveryStore["voidClaims"]>[0]) =>
    this.#write((db) =>
      deliveries.voidDeliveryClaims(db, options) + executions.voidExecutionClaims(db, options)
    );
  releaseClaims = (claimIds: readonly string[], now: number) =>
    this.#write((db) => {
      deliveries.releaseDeliveryClaims(db, claimIds, now);
      executions.releaseExecutionClaims(db, claimIds, now);
    });
  failPaused = (options: Parameters<DeliveryStore["failPaused"]>[0]) =>
    this.#write((db) => deliveries.failPaused(db, options));

  clockSetBack = (now: number) => this.#write((db) => clockSetBack(db, now));

  saveWorkflowVersion = (version: WorkflowVersion) =>
    this.#write((db) => executions.saveWorkflowVersion(db, version));
  claimExecutions = (options: Parameters<ExecutionStore["claimExecutions"]>[0]) =>
    this.#write((db) => executions.claimExecutions(db, { ...options, ...this.#faults }));
  renewExecutionClaims = (claimIds: readonly string[], leaseUntil: number) =>
    this.#write((db) => executions.renewExecutionClaims(db, claimIds, leaseUntil));
  commitExecution = (options: Parameters<ExecutionStore["commitExecution"]>[0]) =>
    this.#write((db) => executions.commitExecution(db, { ...options, newId: this.#newId }));
  cancelExecution = (id: string, now: number) => this.#write((db) => executions.cancelExecution(db, id, now));

  createEndpoint = (endpoint: Endpoint, audit: AuditEntry) =>
    this.#write((db) => endpoints.createEndpoint(db, endpoint, audit));
  findEndpoint = (id: string) => this.#read((db) => endpoints.findEndpoint(db, id));
  listEndpoints = (options: ListOptions) =>
    this.#read((db) => listPage(db, "endpoints", options, endpoints.withSecrets(db)));
  editEndpoint = (id: string, edit: EndpointEdit, options: { now: number; audit: AuditEntry }) =>
    this.#write((db) => endpoints.editEndpoint(db, id, edit, options));
  addEndpointSecret = (id: string, secret: Endpoint["secrets"][number], audit: AuditEntry) =>
    this.#write((db) => endpoints.addEndpointSecret(db, id, secret, audit));
  deleteEndpoint = (id: string, options: Parameters<AdministrationStore["deleteEndpoint"]>[1]) =>
    this.#write((db) => endpoints.deleteEndpoint(db, id, options));

  createTrigger = (trigger: Trigger, audit: AuditEntry) =>
    this.#write((db) => triggers.createTrigger(db, trigger, audit));
  findTrigger = (id: string) => this.#read((db) => triggers.findTrigger(db, id));
  findTriggerByName = (name: string) => this.#read((db) => triggers.findTriggerByName(db, name));
  listTriggers = (options: ListOptions) =>
    this.#read((db) => listPage(db, "triggers", options, triggers.withKeys(db)));
  editTrigger = (id: string, edit: TriggerEdit, options: { now: number; audit: AuditEntry }) =>
    this.#write((db) => triggers.editTrigger(db, id, edit, options));
  addTriggerKey = (id: string, key: Trigger["keys"][number], audit: AuditEntry) =>
    this.#write((db) => triggers.addTriggerKey(db, id, key, audit));
  deleteTriggerKey = (id: string, keyId: string, audit: AuditEntry) =>
    this.#write((db) => triggers.deleteTriggerKey(db, id, keyId, audit));
  deleteTrigger = (id: string, audit: AuditEntry) =>
    this.#write((db) =>
      triggers.deleteTrigger(db, id, { now: this.#clock.now(), newId: this.#newId, audit })
    );
  createEventKey = (key: EventKey, audit: AuditEntry) =>
    this.#write((db) => triggers.createEventKey(db, key, audit));
  listEventKeys = (options: ListOptions) => this.#list("eventKeys", options, eventKeyOf);
  deleteEventKey = (id: string, audit: AuditEntry) =>
    this.#write((db) => triggers.deleteEventKey(db, id, audit));

  findEvent = (id: string) => this.#read((db) => records.findEvent(db, id));
  listEvents = (options: ListOptions) => this.#list("events", options, eventOf);
  erasePayload = (id: string, options: Parameters<AdministrationStore["erasePayload"]>[1]) =>
    this.#write((db) => records.erasePayload(db, id, options));
  listDeliveries = (options: ListOptions) => this.#list("deliveries", options, deliveryOf);
  findDelivery = (id: string, options: { readonly responses?: boolean | undefined } = {}) =>
    this.#read((db) => records.findDelivery(db, id, options));
  resendDelivery = (id: string, options: { now: number; audit: AuditEntry }) =>
    this.#write((db) => records.resendDelivery(db, id, options));
  recoverDeliveries = (options: Parameters<AdministrationStore["recoverDeliveries"]>[0]) =>
    this.#write((db) => records.recoverDeliveries(db, options));
  listExecutions = (options: ListOptions) =>
    this.#read((db) => listPage(db, "executions", options, executions.withSteps(db)));
  findExecution = (id: string) => this.#read((db) => executions.findExecution(db, id));
  listAudit = (options: ListOptions) => this.#list("audit", options, auditOf);
  addAudit = (entry: AuditEntry) => this.#write((db) => addAudit(db, entry));
  figures = (now: number) => this.#read((db) => records.storeFigures(db, now));
  removeFinished = (options: Parameters<AdministrationStore["removeFinished"]>[0]) =>
    this.#write((db) => removeFinished(db, options));
  clearRemoved = async (options: Parameters<AdministrationStore["clearRemoved"]>[0]) =>
    await this.#read(isAnythingRemoved) && await this.#write((db) => clearRemoved(db, options));

  /** Commits what waits and closes the file; twice is fine. */
  // deno-lint-ignore require-await -- what fails is a rejection
  async close(): Promise<void> {
    this.#commits.close();
    this.#connection.close();
  }

  #write<T>(run: (connection: SqliteConnection) => T): Promise<T> {
    return this.#commits.write(() => run(this.#connection));
  }

  /** Reads at once: what was answered before is there, what still waits for its commit is not. */
  // deno-lint-ignore require-await -- what fails is a rejection
  async #read<T>(run: (connection: SqliteConnection) => T): Promise<T> {
    return this.#connection.snapshot(() => run(this.#connection));
  }

  #list<T>(name: ListName, options: ListOptions, read: (row: Row) => T): Promise<Page<T>> {
    return this.#read((connection) => listPage(connection, name, options, read));
  }
}

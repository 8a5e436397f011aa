import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type {
  AuditEntry,
  Endpoint,
  EndpointEdit,
  EventKey,
  Trigger,
  TriggerEdit,
  WorkflowVersion,
} from "../model/records.ts";
import * as accept from "./accept.ts";
import { releaseClaims, voidClaims } from "./claims.ts";
import { clockSetBack } from "./clock_set_back.ts";
import * as deliveries from "./deliveries.ts";
import * as endpoints from "./endpoints.ts";
import * as executionClaims from "./execution_claims.ts";
import * as executions from "./executions.ts";
import { type ListName, listPage } from "./lists.ts";
import * as records from "./records.ts";
import { removeFinished } from "./retention.ts";
import { auditOf, deliveryOf, eventKeyOf, eventOf } from "./rows.ts";
import { addAudit } from "./audit_log.ts";
import * as triggers from "./triggers.ts";
import type { Row, Work } from "./work.ts";
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

/** What operations need beside the database. */
export interface OperationOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Names the deliveries of an event, and the entries of the audit log that the store writes itself. */
  readonly newId?: (() => string) | undefined;
}

/** What differs from one database to another. */
type OwnOperations = "claimDeliveries" | "clearRemoved" | "figures" | "close";

/** The part of the port that is the same over each database: every operation is one transaction of it. */
export abstract class OperationStore implements Omit<WebhookStore, OwnOperations> {
  protected readonly faults: deliveries.RowFaults;
  readonly #clock: Clock;

  protected constructor({ logger, clock, newId = () => crypto.randomUUID() }: OperationOptions) {
    this.faults = { newId, logger };
    this.#clock = clock;
  }

  /** Carries out work that changes nothing, and sees one state. */
  protected abstract read<T>(work: () => Work<T>): Promise<T>;
  /** Carries out work that writes, and sees what others have written before it. */
  protected abstract write<T>(work: () => Work<T>): Promise<T>;

  /** Called after a payload was erased: the database may keep older versions of its rows. */
  protected removeTraces(): void {}

  findTriggerKey = (hash: string) => this.read(() => triggers.findTriggerKey(hash));
  findEventKey = (hash: string) => this.read(() => triggers.findEventKey(hash));
  findIdempotency = (scope: string, key: string, now: number) =>
    this.read(() => accept.findIdempotency(scope, key, now));
  acceptExecution = (execution: NewExecution, options: accept.AcceptOptions) =>
    this.write(() => accept.acceptExecution(execution, options));
  acceptEvent = (event: NewEvent, options: accept.AcceptOptions) =>
    this.write(() => accept.acceptEvent(event, { ...options, newId: this.faults.newId }));

  dueEndpoints = (now: number) => this.read(() => deliveries.dueEndpoints(now));
  renewClaims = (claimIds: readonly string[], leaseUntil: number) =>
    this.write(() => deliveries.renewClaims(claimIds, leaseUntil));
  beginAttempt = (options: Parameters<DeliveryStore["beginAttempt"]>[0]) =>
    this.write(() => deliveries.beginAttempt(options));
  finishAttempt = (options: Parameters<DeliveryStore["finishAttempt"]>[0]) =>
    this.write(() => deliveries.finishAttempt(options));
  voidClaims = (options: Parameters<DeliveryStore["voidClaims"]>[0]) => this.write(() => voidClaims(options));
  releaseClaims = (claimIds: readonly string[], now: number) =>
    this.write(() => releaseClaims(claimIds, now));
  failPaused = (options: Parameters<DeliveryStore["failPaused"]>[0]) =>
    this.write(() => deliveries.failPaused(options));
  clockSetBack = (now: number) => this.write(() => clockSetBack(now));

  saveWorkflowVersion = (version: WorkflowVersion) => this.write(() => accept.saveVersion(version));
  findWorkflowVersion = (id: string) => this.read(() => executionClaims.findWorkflowVersion(id));
  dueExecutions = (now: number) => this.read(() => executionClaims.dueExecutions(now));
  claimExecutions = (options: Parameters<ExecutionStore["claimExecutions"]>[0]) =>
    this.write(() => executionClaims.claimExecutions({ ...options, ...this.faults }));
  renewExecutionClaims = (claimIds: readonly string[], leaseUntil: number) =>
    this.write(() => executions.renewExecutionClaims(claimIds, leaseUntil));
  commitExecution = (options: Parameters<ExecutionStore["commitExecution"]>[0]) =>
    this.write(() => executions.commitExecution({ ...options, newId: this.faults.newId }));
  cancelExecution = (id: string, now: number) => this.write(() => executions.cancelExecution(id, now));

  createEndpoint = (endpoint: Endpoint, audit: AuditEntry) =>
    this.write(() => endpoints.createEndpoint(endpoint, audit));
  findEndpoint = (id: string) => this.read(() => endpoints.findEndpoint(id));
  listEndpoints = (options: ListOptions) =>
    this.read(() => listPage("endpoints", options, endpoints.endpointsOf));
  editEndpoint = (id: string, edit: EndpointEdit, options: { now: number; audit: AuditEntry }) =>
    this.write(() => endpoints.editEndpoint(id, edit, options));
  addEndpointSecret = (id: string, secret: Endpoint["secrets"][number], audit: AuditEntry) =>
    this.write(() => endpoints.addEndpointSecret(id, secret, audit));
  deleteEndpoint = (id: string, options: Parameters<AdministrationStore["deleteEndpoint"]>[1]) =>
    this.write(() => endpoints.deleteEndpoint(id, options));

  createTrigger = (trigger: Trigger, audit: AuditEntry) =>
    this.write(() => triggers.createTrigger(trigger, audit));
  findTrigger = (id: string) => this.read(() => triggers.findTrigger(id));
  findTriggerByName = (name: string) => this.read(() => triggers.findTriggerByName(name));
  listTriggers = (options: ListOptions) =>
    this.read(() => listPage("triggers", options, triggers.triggersOf));
  editTrigger = (id: string, edit: TriggerEdit, options: { now: number; audit: AuditEntry }) =>
    this.write(() => triggers.editTrigger(id, edit, options));
  addTriggerKey = (id: string, key: Trigger["keys"][number], audit: AuditEntry) =>
    this.write(() => triggers.addTriggerKey(id, key, audit));
  deleteTriggerKey = (id: string, keyId: string, audit: AuditEntry) =>
    this.write(() => triggers.deleteTriggerKey(id, keyId, audit));
  deleteTrigger = (id: string, audit: AuditEntry) =>
    this.write(() => triggers.deleteTrigger(id, { now: this.#clock.now(), newId: this.faults.newId, audit }));
  createEventKey = (key: EventKey, audit: AuditEntry) =>
    this.write(() => triggers.createEventKey(key, audit));
  listEventKeys = (options: ListOptions) => this.#list("eventKeys", options, eventKeyOf);
  deleteEventKey = (id: string, audit: AuditEntry) => this.write(() => triggers.deleteEventKey(id, audit));

  findEvent = (id: string) => this.read(() => records.findEvent(id));
  listEvents = (options: ListOptions) => this.#list("events", options, eventOf);
  erasePayload = async (id: string, options: Parameters<AdministrationStore["erasePayload"]>[1]) => {
    const isFound = await this.write(() => records.erasePayload(id, options));
    this.removeTraces();
    return isFound;
  };
  listDeliveries = (options: ListOptions) => this.#list("deliveries", options, deliveryOf);
  findDelivery = (id: string, options: { readonly responses?: boolean | undefined } = {}) =>
    this.read(() => records.findDelivery(id, options));
  resendDelivery = (id: string, options: { now: number; audit: AuditEntry }) =>
    this.write(() => records.resendDelivery(id, options));
  recoverDeliveries = (options: Parameters<AdministrationStore["recoverDeliveries"]>[0]) =>
    this.write(() => records.recoverDeliveries(options));
  listExecutions = (options: ListOptions) =>
    this.read(() => listPage("executions", options, executions.listedExecutionsOf));
  findExecution = (id: string) => this.read(() => executions.findExecution(id));
  listAudit = (options: ListOptions) => this.#list("audit", options, auditOf);
  addAudit = (entry: AuditEntry) => this.write(() => addAudit(entry));
  removeFinished = (options: Parameters<AdministrationStore["removeFinished"]>[0]) =>
    this.write(() => removeFinished(options));

  #list<T>(name: ListName, options: ListOptions, read: (row: Row) => T): Promise<Page<T>> {
    return this.read(() =>
      // deno-lint-ignore require-yield -- rows of these lists stand for themselves
      listPage(name, options, function* (rows) {
        return rows.map(read);
      })
    );
  }
}

import { assert } from "#assert";
import { createHash } from "node:crypto";
import type { Logger } from "../../src/base/log.ts";
import type {
  Endpoint,
  Execution,
  ExecutionStep,
  WorkflowVersion,
} from "../../src/webhooks/model/records.ts";
import { openSqliteStore } from "../../src/webhooks/store/sqlite/store.ts";
import type { LimitCall } from "../../src/webhooks/model/limit_call.ts";
import type { Workflow, WorkflowListing, Workflows } from "../../src/webhooks/model/workflow.ts";
import { problemText } from "../../src/base/problem.ts";
import { readWorkflowFile } from "../../src/webhooks/workflows/file.ts";
import { WorkflowRunner, type WorkflowRunnerOptions } from "../../src/webhooks/workflows/runner.ts";
import { FakeClock } from "./fake_clock.ts";
import { type HttpServer, serveHttp } from "./http_server.ts";
import { UNSYNCED } from "./sqlite_fixture.ts";
import { until } from "./until.ts";
import {
  type Acceptance,
  acceptExecution,
  saveWorkflowVersion,
} from "../../src/webhooks/store/operations/accept.ts";
import { createEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { findEvent, listEvents } from "../../src/webhooks/store/operations/events.ts";
import { findExecution } from "../../src/webhooks/store/operations/executions.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

/** One request that is tried up to three times. */
export const retried = (url: string) =>
  `workflow: w
steps:
- name: call
  request: { url: "${url}/call", timeout: 5s }
  retry: { attempts: 3, backoff: 1s }
- name: result
  set: { status: "{{ steps.call.status }}" }
`;

/** A request that the server of the steps has seen. */
interface SeenRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly path: string;
  readonly key: string | null;
  readonly headers: Headers;
  readonly body: string;
}

/** A local server that keeps what it is asked and gives the answers of the test. */
class StepServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** The answer to each request; 200 and an empty object when nothing else is set. */
  answer: (seen: SeenRequest) => Response | Promise<Response> = () => Response.json({});
  readonly #server: HttpServer;

  constructor() {
    this.#server = serveHttp(async (request) => {
      const { method, headers } = request;
      const { pathname, search } = new URL(request.url);
      const key = headers.get("idempotency-key");
      const seen = { method, path: `${pathname}${search}`, key, headers, body: await request.text() };
      this.requests.push(seen);
      return await this.answer(seen);
    });
  }

  get url(): string {
    return this.#server.origin;
  }

  /** Has requests wait for their answer until the function that it returns is called. */
  hold(answer: () => Response = () => new Response("ok")): () => void {
    const gate = Promise.withResolvers<void>();
    this.answer = () => gate.promise.then(answer);
    return gate.resolve;
  }

  /** Waits for so many requests. */
  async asked(count = 1): Promise<void> {
    await until("the request", () => this.requests.length >= count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/** Keeps the lines of the log. */
export class KeptLines implements Logger {
  readonly lines: string[] = [];
  readonly debug = this.#keep("debug");
  readonly info = this.#keep("info");
  readonly warning = this.#keep("warning");
  readonly error = this.#keep("error");

  #keep(level: string): (message: string, fields?: Readonly<Record<string, unknown>>) => void {
    return (message, fields = {}) => {
      const { error, ...rest } = fields;
      const cause = error instanceof Error ? ` ${error.message}` : "";
      const told = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
      this.lines.push(`${level} ${message}${told}${cause}`);
    };
  }
}

/** Workflows that a test sets by hand. */
export class GivenWorkflows implements Workflows {
  readonly #current = new Map<string, { version: WorkflowVersion; workflow: Workflow }>();

  /** Puts a text in force; answers it as it is stored. */
  set(text: string): WorkflowVersion {
    const { workflow, problems } = readWorkflowFile("test.yaml", text);
    assert(workflow !== undefined, problems.map(problemText).join("\n"));
    const id = createHash("sha256").update(text).digest("hex");
    const version = { id, workflow: workflow.id, text };
    this.#current.set(workflow.id, { version, workflow });
    return version;
  }

  delete(name: string): void {
    this.#current.delete(name);
  }

  current(name: string): { readonly version: WorkflowVersion; readonly workflow: Workflow } | undefined {
    return this.#current.get(name);
  }

  parse({ text }: WorkflowVersion): Workflow {
    const { workflow, problems } = readWorkflowFile("stored", text);
    if (workflow === undefined) throw new Error(problems.map(problemText).join("\n"));
    return workflow;
  }

  listing(): WorkflowListing {
    return { problems: [], entries: [] };
  }
}

/** An execution and its steps as they stand. */
interface Found {
  readonly execution: Execution;
  readonly steps: readonly ExecutionStep[];
}

/** The input of an execution, and what happens around its write. */
interface AcceptedInput {
  readonly input?: string;
  readonly write?: (call: () => Promise<Acceptance<Execution>>) => Promise<Acceptance<Execution>>;
}

/** A real store, a server for the steps, time that stands still, and runners on them. */
export class WorkflowBed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new KeptLines();
  readonly server = new StepServer();
  readonly workflows = new GivenWorkflows();
  readonly ends: string[] = [];
  limit: LimitCall = () => Promise.resolve({ code: "OK" });
  #runners: WorkflowRunner[] = [];

  private constructor(readonly store: WebhookStore, readonly folder: string) {}

  static async open(): Promise<WorkflowBed> {
    const folder = await Deno.makeTempDir();
    const log = new KeptLines();
    const store = await openSqliteStore({
      path: `${folder}/weir.db`,
      logger: log,
      clock: new FakeClock(),
      ...UNSYNCED,
    });
    return new WorkflowBed(store, folder);
  }

  runner(options: Partial<WorkflowRunnerOptions> = {}): WorkflowRunner {
    const runner = new WorkflowRunner({
      store: this.store,
      workflows: this.workflows,
      fetch: globalThis.fetch,
      limit: (...question) => this.limit(...question),
      clock: this.clock,
      random: () => 1 - Number.EPSILON,
      newId: () => crypto.randomUUID(),
      env: { TOKEN: "s3cret-token" },
      maxRunning: 200,
      logger: this.log,
      onEnd: (status) => this.ends.push(status),
      ...options,
    });
    this.#runners.push(runner);
    return runner;
  }

  /** Starts an execution of a text, as a trigger does. */
  async begin(text: string, input: unknown): Promise<string> {
    const version = this.workflows.set(text);
    return await this.beginVersion(version, typeof input === "string" ? input : JSON.stringify(input));
  }

  async beginVersion(version: WorkflowVersion, input: string): Promise<string> {
    const id = crypto.randomUUID();
    const execution = { id, workflow: version.workflow, versionId: version.id, triggerId: "t", input };
    await Promise.all([
      this.store.write(saveWorkflowVersion, version),
      this.store.write(acceptExecution, execution, { now: this.clock.now() }),
    ]);
    return id;
  }

  /** Has a runner accept an execution, as a trigger does. */
  async accept(
    runner: WorkflowRunner,
    text: string,
    { input = "{}", write = (call) => call() }: AcceptedInput = {},
  ): Promise<Execution | undefined> {
    const { id: versionId, workflow } = this.workflows.set(text);
    const execution = { id: crypto.randomUUID(), workflow, versionId, text, triggerId: "t", input };
    const acceptance = await runner.accept(execution, (execution) => {
      return write(() => this.store.write(acceptExecution, execution, { now: this.clock.now() }));
    });
    return acceptance.kind === "new" ? acceptance.value : undefined;
  }

  /** The execution and its steps as they stand. */
  async find(id: string): Promise<Found> {
    const found = await this.store.read(findExecution, id);
    assert(found !== undefined);
    return found;
  }

  /** Waits until the execution has this status; time stands still. */
  async ended(id: string): Promise<Found> {
    return await until(`the end of ${id}`, async () => {
      const found = await this.find(id);
      return found.execution.finishedAt === undefined ? undefined : found;
    }, { intervalMs: 2 });
  }

  /** Waits until no worker has the execution, and it is due later; answers in how many milliseconds. */
  async waiting(id: string): Promise<number> {
    return await until(`${id} to wait`, async () => {
      const { execution: { claimId, dueAt, status } } = await this.find(id);
      if (status !== "running" || claimId !== undefined || dueAt === undefined) return undefined;
      return dueAt > this.clock.now() ? dueAt - this.clock.now() : undefined;
    }, { intervalMs: 2 });
  }

  /** The bodies of the events so far, oldest first. */
  async events(): Promise<readonly string[]> {
    const { items } = await this.store.read(listEvents, { limit: 200 });
    const events = await Promise.all(items.map(({ id }) => this.store.read(findEvent, id)));
    return events.map((event) => new TextDecoder().decode(event?.body)).reverse();
  }

  async addEndpoint(): Promise<void> {
    const endpoint: Endpoint = {
      id: crypto.randomUUID(),
      url: "https://receiver.example/",
      events: ["workflow.*"],
      description: "",
      enabled: true,
      createdAt: 0,
      updatedAt: 0,
      headerNames: [],
      concurrency: 4,
      standardWebhooks: false,
      secrets: [],
    };
    const audit = {
      id: crypto.randomUUID(),
      at: 0,
      actor: "admin",
      action: "endpoint.created",
      object: "",
      details: {},
    };
    await this.store.write(createEndpoint, endpoint, audit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    let isOver = false;
    const stopped = Promise.all(this.#runners.map((runner) => runner.stop(0))).then(() =>
      void (isOver = true)
    );
    // Work that hangs, as that of a process that is gone, is left to itself after some time.
    await until("the end of the runners", () => {
      if (!isOver) this.clock.advance(1_000);
      return isOver;
    }, { intervalMs: 1 });
    await stopped;
    await this.store.close();
    await this.server[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

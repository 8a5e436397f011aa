import { PostgresServer, type PostgresServerOptions } from "./postgres_server.ts";
import { post, type WebhookAnswered } from "./webhook_client.ts";
import { ADMIN_TOKEN, WebhookProcess, type WebhookStart } from "./webhook_process.ts";
import type { WebhookReceiver } from "./webhook_receiver.ts";

/** Several Weirs that share a store. */
export interface FleetOptions {
  /** How many; three when absent. */
  readonly size?: number | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Workflow files by name. */
  readonly workflows?: Readonly<Record<string, string>> | undefined;
  /** Of the database server; ignored where there is an address. */
  readonly server?: PostgresServerOptions | undefined;
  /** Of a database whose server the test has itself. */
  readonly address?: string | undefined;
}

/** What is committed is on the disk, as it has to be where a server is killed. */
export const DURABLE: PostgresServerOptions = { settings: { fsync: "on", synchronous_commit: "on" } };

const SIZE = 3;
/** The same for all: each reads what another has sealed. */
const ENCRYPTION_KEY = new Uint8Array(32).fill(9).toBase64();

/**
 * Several Weirs on one PostgreSQL, which are called in turn. No process runs until `start`; what comes of it is the same
 * whichever is asked.
 */
export class WebhookFleet implements AsyncDisposable {
  readonly members: readonly WebhookProcess[];
  readonly #stack: AsyncDisposableStack;
  readonly #server: PostgresServer | undefined;
  /** The database on the fleet's own server. */
  readonly database: string;
  #turn = 0;

  private constructor(
    members: readonly WebhookProcess[],
    parts: {
      readonly stack: AsyncDisposableStack;
      readonly server: PostgresServer | undefined;
      readonly database: string;
    },
  ) {
    this.members = members;
    this.#stack = parts.stack;
    this.#server = parts.server;
    this.database = parts.database;
  }

  /** Starts a server with an empty database, where none is named. */
  static async open(options: FleetOptions = {}): Promise<WebhookFleet> {
    const { size = SIZE, env = {}, workflows, server: serverOptions = DURABLE } = options;
    await using stack = new AsyncDisposableStack();
    const server = options.address === undefined
      ? stack.use(await PostgresServer.start(serverOptions))
      : undefined;
    const database = await server?.createDatabase() ?? "";
    const address = options.address ?? server?.url(database) ?? "";
    const settings = { WEBHOOK_STORE: address, WEBHOOK_ENCRYPTION_KEY: ENCRYPTION_KEY, ...env };
    const members: WebhookProcess[] = [];
    for (let n = 0; n < size; n++) {
      const folder = members[0]?.folder;
      members.push(stack.use(await WebhookProcess.open({ folder, workflows, env: settings })));
    }
    return new WebhookFleet(members, { stack: stack.move(), server, database });
  }

  /** The server of its own. */
  get server(): PostgresServer {
    if (this.#server === undefined) throw new Error("Cannot use the server: the fleet has none of its own");
    return this.#server;
  }

  /** The first of them. */
  get first(): WebhookProcess {
    return this.member(0);
  }

  /** One of them, counted round. */
  member(n: number): WebhookProcess {
    const member = this.members[n % this.members.length];
    if (member === undefined) throw new Error("Cannot use a fleet: it has no members");
    return member;
  }

  /** Starts all at once, each with the faults of its place. */
  async start(start: WebhookStart = {}): Promise<void> {
    await Promise.all(this.members.map((_, n) => this.startMember(n, start)));
  }

  /** Starts one; its workflows read from `env.GENERATION` which process it is, among those of all. */
  async startMember(n: number, start: WebhookStart = {}): Promise<void> {
    const member = this.member(n);
    await member.start({ ...start, env: { GENERATION: `${n}.${member.generation + 1}`, ...start.env } });
  }

  /** What all have written to their logs. */
  get lines(): readonly string[] {
    return this.members.flatMap(({ lines }) => lines);
  }

  /** Carries out SQL on the database as the superuser of its server. */
  async psql(sql: string): Promise<string> {
    return await this.server.psql(sql, this.database);
  }

  /** Makes an endpoint at a path of the receiver. */
  async endpoint(
    ...args: Parameters<WebhookProcess["endpoint"]>
  ): ReturnType<WebhookProcess["endpoint"]> {
    return await this.first.endpoint(...args);
  }

  /** Makes a record. */
  async made(...args: Parameters<WebhookProcess["made"]>): ReturnType<WebhookProcess["made"]> {
    return await this.first.made(...args);
  }

  /** Posts an event to one after the other until it is taken. */
  async event(data: unknown, key: string, kind = "agent.reply.completed"): Promise<WebhookAnswered> {
    return await post(this.#inTurn("/events"), { event: kind, data }, { token: ADMIN_TOKEN, key });
  }

  /** Calls a trigger of one after the other until it is taken. */
  async trigger(name: string, token: string, body: unknown, key?: string): Promise<WebhookAnswered> {
    return await post(this.#inTurn(`/workflows/triggers/${name}`), body, { token, key });
  }

  /** Calls a trigger of one after the other with a signature until it is taken. */
  async signedTrigger(
    name: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<WebhookAnswered> {
    return await post(this.#inTurn(`/workflows/triggers/${name}`), body, { headers });
  }

  /** Everything of a list, as the first shows it. */
  async all(path: string): ReturnType<WebhookProcess["all"]> {
    return await this.first.all(path);
  }

  /** Whether nothing is left to be delivered. */
  async isDelivered(): Promise<boolean> {
    return await this.first.isDelivered();
  }

  /** Whether no execution is left to be carried out. */
  async isCarriedOut(): Promise<boolean> {
    return await this.first.isCarriedOut();
  }

  /** Kills what runs, and the server of its own. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #inTurn(path: string): (tries: number) => string {
    const turn = this.#turn++;
    return (tries) => `${this.member(turn + tries - 1).base}/api/v1${path}`;
  }
}

/** Makes so many endpoints of one kind of event each; answers the kinds. */
export async function endpointsByKind(
  fleet: Pick<WebhookProcess, "endpoint">,
  receiver: WebhookReceiver,
  count: number,
  fields: Readonly<Record<string, unknown>>,
): Promise<readonly string[]> {
  const kinds = Array.from({ length: count }, (_, n) => `lane.n${n}`);
  for (const kind of kinds) await fleet.endpoint(receiver, `/${kind}`, { ...fields, events: [kind] });
  return kinds;
}

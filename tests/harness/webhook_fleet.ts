import { PostgresServer } from "./postgres_server.ts";
import { WebhookCalls } from "./webhook_calls.ts";
import { WebhookProcess, type WebhookStart } from "./webhook_process.ts";
import type { WebhookReceiver } from "./webhook_receiver.ts";

/** Several Weirs that share a store. */
interface FleetOptions {
  /** Number of instances; three when absent. */
  readonly size?: number | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Workflow files by name. */
  readonly workflows?: Readonly<Record<string, string>> | undefined;
  /** Of a database whose server the test has itself; its own server is started when absent. */
  readonly address?: string | undefined;
}

const SIZE = 3;
const DURABLE = { settings: { fsync: "on", synchronous_commit: "on" } };
/** The same for all: each reads what another has sealed. */
const ENCRYPTION_KEY = new Uint8Array(32).fill(9).toBase64();

/**
 * Several Weirs on one PostgreSQL, which take events and calls of triggers in turn; the first one is asked for the rest.
 * No process runs until `start`.
 */
export class WebhookFleet extends WebhookCalls implements AsyncDisposable {
  readonly members: readonly WebhookProcess[];
  readonly #stack: AsyncDisposableStack;
  readonly #server: PostgresServer | undefined;
  /** The database on the fleet's own server. */
  readonly database: string;
  #turn = 0;

  private constructor(
    members: readonly WebhookProcess[],
    parts: { stack: AsyncDisposableStack; server: PostgresServer | undefined; database: string },
  ) {
    super();
    this.members = members;
    this.#stack = parts.stack;
    this.#server = parts.server;
    this.database = parts.database;
  }

  /** Starts a server with an empty database, where none is named. */
  static async open(
    { size = SIZE, env = {}, workflows, ...options }: FleetOptions = {},
  ): Promise<WebhookFleet> {
    await using stack = new AsyncDisposableStack();
    const server = options.address === undefined ? stack.use(await PostgresServer.start(DURABLE)) : undefined;
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

  get base(): string {
    return this.first.base;
  }

  get debugAddress(): string {
    return this.first.debugAddress;
  }

  /** Its own server. */
  get server(): PostgresServer {
    if (this.#server === undefined) throw new Error("Cannot use the server: it belongs to the test");
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

  /** Starts all at the same time, each with the faults of its place. */
  async start(start: WebhookStart = {}): Promise<void> {
    await Promise.all(this.members.map((_, n) => this.startMember(n, start)));
  }

  /** Starts one; its workflows read from `env.GENERATION` which process it is, among those of all. */
  async startMember(n: number, start: WebhookStart = {}): Promise<void> {
    const member = this.member(n);
    await member.start({ ...start, env: { GENERATION: `${n}.${member.generation + 1}`, ...start.env } });
  }

  get lines(): readonly string[] {
    return this.members.flatMap(({ lines }) => lines);
  }

  /** Carries out SQL on the database as the superuser of its server. */
  async psql(sql: string): Promise<string> {
    return await this.server.psql(sql, this.database);
  }

  protected override urlOf(path: string): (tries: number) => string {
    const turn = this.#turn++;
    return (tries) => `${this.member(turn + tries - 1).base}/api/v1${path}`;
  }

  /** Kills what runs, and its own server. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
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

import { assertEquals } from "#assert";
import { POSTGRES_USER } from "../../harness/postgres_folder.ts";
import { ownPostgres } from "../../harness/postgres_fixture.ts";
import type { PostgresServer } from "../../harness/postgres_server.ts";
import { SecretFolder } from "../../harness/secret_folder.ts";
import { SteadyCalls } from "../../harness/steady_calls.ts";
import { until } from "../../harness/until.ts";
import { SHOP_RULES } from "../../harness/webhook_calls.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { untilStoreIsOpen } from "../../harness/webhook_weir.ts";

const WORKFLOW = "workflow: w\nsteps:\n  - name: only\n    set: { n: 1 }\n";
const SECOND = "second-pa55word";
const CALLERS = 2;
/** Pause between the calls of one: the database has work without them. */
const PAUSE_MS = 20;
/** Calls that have to be accepted to show that nothing fails. */
const STEADY_CALLS = 20;

/** A service whose database changes its password while triggers are called all the time. */
class Bed implements AsyncDisposable {
  readonly weir: WebhookServed;
  readonly #folder: SecretFolder;
  readonly #server: PostgresServer;
  readonly #first: string;
  readonly #ending = new AbortController();
  #load: Promise<unknown> = Promise.resolve();
  readonly #calls = new SteadyCalls(CALLERS);

  private constructor(weir: WebhookServed, folder: SecretFolder, server: PostgresServer, address: string) {
    this.weir = weir;
    this.#folder = folder;
    this.#server = server;
    this.#first = address;
  }

  static async open(server: PostgresServer): Promise<Bed> {
    const folder = new SecretFolder();
    const weir = await WebhookServed.open({
      env: {
        WEBHOOK_STORE: "",
        WEBHOOK_STORE_FILE: folder.file("store"),
        WEBHOOK_ENCRYPTION_KEY: new Uint8Array(32).fill(9).toBase64(),
      },
      workflows: { "w.yaml": WORKFLOW },
    });
    const bed = new Bed(weir, folder, server, server.url(await server.createDatabase()));
    bed.write(POSTGRES_USER.password);
    return bed;
  }

  write(password: string): void {
    const [first, next] = [POSTGRES_USER.password, password].map(encodeURIComponent);
    this.#folder.write("store", this.#first.replace(first ?? "", next ?? ""));
  }

  async change(): Promise<void> {
    await this.#server.psql(`ALTER ROLE ${POSTGRES_USER.name} PASSWORD '${SECOND}'`);
  }

  async kill(): Promise<void> {
    await this.#server.breakConnections();
  }

  async load(): Promise<void> {
    const { key: token } = await this.weir.made("/triggers", { name: "t", workflow: "w" });
    this.#load = Promise.all(Array.from({ length: CALLERS }, (_, caller) => this.#call(caller, token)));
  }

  /** Calls are accepted, and none is refused. */
  async goesOn(): Promise<void> {
    await this.#calls.goOn(STEADY_CALLS);
  }

  /** The calls of all callers are accepted. */
  async recovers(): Promise<void> {
    await this.#calls.recover();
  }

  async refuses(): Promise<void> {
    this.#calls.failures = [];
    await until("calls that are refused", () => this.#calls.failures.length > CALLERS);
  }

  async logs(text: string): Promise<void> {
    await until(text, () => this.weir.lines.some((line) => line.includes(text)));
  }

  async #call(caller: number, token: string): Promise<void> {
    const url = `${this.weir.base}/api/v1/workflows/triggers/t`;
    while (!this.#ending.signal.aborted) {
      const { status, body } = await webhookCall(url, { token, key: crypto.randomUUID(), body: {} });
      if (status === 202) this.#calls.noteSuccess(caller);
      else this.#calls.noteFailure(`${status} ${body.code}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#load;
    await this.weir.stop();
    const log = this.weir.lines.join("\n");
    assertEquals([SECOND, POSTGRES_USER.password].filter((password) => log.includes(password)), []);
    await this.weir[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }
}

ownPostgres.test("store rotation: triggers go on while the password changes, on the server first", async (server) => {
  await using bed = await Bed.open(server);
  await bed.weir.start({ rules: SHOP_RULES });
  await bed.load();
  await bed.change();
  await bed.goesOn();
  await bed.kill();
  await bed.refuses();
  bed.write(SECOND);
  await bed.recovers();
  await bed.logs("New credentials accepted");
  await bed.goesOn();
  // The worker reports its metrics once in a while.
  await until("the metric", async () => await bed.weir.metric("store_credentials_reloaded") > 0);
});

ownPostgres.test("store rotation: triggers go on while the password changes, in the file first", async (server) => {
  await using bed = await Bed.open(server);
  await bed.weir.start({ rules: SHOP_RULES });
  await bed.load();
  bed.write(SECOND);
  await bed.logs("Credentials of WEBHOOK_STORE_FILE reloaded");
  await bed.goesOn();
  await bed.kill();
  await bed.logs("New credentials refused; using the former ones");
  await bed.recovers();
  await bed.change();
  await bed.goesOn();
  await bed.kill();
  await bed.logs("New credentials accepted");
  await bed.recovers();
});

ownPostgres.test("store rotation: a service that began with the former password opens its store", async (server) => {
  await using bed = await Bed.open(server);
  await bed.change();
  await bed.weir.start({ rules: SHOP_RULES, isAwaited: false });
  await bed.logs("password authentication failed");
  bed.write(SECOND);
  await untilStoreIsOpen(bed.weir.fixture.httpAddress);
  await bed.logs("New credentials accepted");
  await bed.load();
  await bed.goesOn();
});

/** A limit of requests in flight with a real Envoy, as docs/algorithms.md describes it. */
import { assertEquals } from "#assert";
import { parse } from "yaml";
import { EnvoyBed, shippedConfig } from "../../harness/envoy_bed.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const PAGE = await Deno.readTextFile(new URL("../../../docs/algorithms.md", import.meta.url));

const NAMES: Readonly<Record<string, BedNames>> = {
  "": { named: false },
  ", with names": { named: true },
  ", with one name that all clients chose": { named: true, chosenId: "chosen" },
};

for (const [title, names] of Object.entries(NAMES)) {
  Deno.test({
    ...needs(["envoy"], `exactly the maximum of parallel requests run, and as they end others enter${title}`),
    fn: () => testMaximum(names),
  });
}

async function testMaximum(names: BedNames): Promise<void> {
  await using bed = await Bed.start({ maxInFlight: 10, lease: "1h", ...names });
  const first = bed.send(50);
  await until("40 requests to be refused", () => first.statuses.length === 40 && bed.running === 10);
  assertEquals(new Set(first.statuses), new Set([429]));
  bed.finish(4);
  await until("four requests to end", () => first.statuses.length === 44);
  await until("their hits to be given back", async () => await bed.stat("returned_hits") === 4);
  const second = bed.send(6);
  await until("four others to enter", () => bed.running === 10 && second.statuses.length === 2);
  assertEquals(second.statuses, [429, 429]);
  bed.finish(10);
  await Promise.all([first.ended, second.ended]);
  await until("all to be given back", async () => await bed.stat("returned_hits") === 14);
  assertEquals([await bed.used(), bed.mostRunning], [0, 10]);
  // Refused requests have given nothing back.
  assertEquals([await bed.stat("within_limit"), await bed.stat("over_limit")], [14, 42]);
  assertEquals(bed.envoyLog.filter((line) => line.includes("hits_addend")), []);
}

Deno.test({
  ...needs(["envoy"], "the hits of an Envoy that was killed are free again after their lease"),
  async fn() {
    await using bed = await Bed.start({ maxInFlight: 2, lease: "2s", named: false });
    const { statuses } = bed.send(3);
    await until("one request to be refused", () => statuses.length === 1 && bed.running === 2);
    await bed.killEnvoy();
    await until("the lease to end", async () => await bed.used() === 0);
    assertEquals(await bed.stat("returned_hits"), 0);
  },
});

Deno.test({
  ...needs(
    ["envoy"],
    "with names, the hits of an Envoy that was killed are free after their lease on a busy key",
  ),
  async fn() {
    const leaseMs = 5_000;
    await using bed = await Bed.start({ maxInFlight: 60, lease: "5s", named: true });
    const startedAt = performance.now();
    const killed = bed.send(50);
    await until("50 slow requests to run", () => bed.running === 50);
    await bed.killEnvoy();
    const killedAt = performance.now();
    await bed.restartEnvoy();
    // Other requests begin and end all the time, so that the key is never idle.
    let rounds = 0;
    for (let used = 50; used > 0;) {
      const { statuses } = bed.send(3);
      await until("three others to run", () => bed.running === 53);
      bed.finishNewest(3);
      await until("three others to end", () => statuses.length === 3);
      assertEquals(statuses, [200, 200, 200]);
      rounds++;
      await until("them to be given back", async () => await bed.stat("returned_hits") === 3 * rounds);
      const askedAt = performance.now();
      used = await bed.used();
      if (performance.now() - startedAt < leaseMs) assertEquals(used, 50);
      if (askedAt - killedAt > leaseMs + CLOCKS_MS) assertEquals(used, 0);
    }
    assertEquals(rounds > 1, true);
    assertEquals(killed.statuses, []);
  },
});

/** The names that requests have in the rule. */
interface BedNames {
  readonly named: boolean;
  /** Sent by all clients; Envoy trusts it. */
  readonly chosenId?: string;
}

/** The clock of the service and that of the test may differ by so much. */
const CLOCKS_MS = 50;

/** An application that answers when the test lets it, behind an Envoy that asks a Weir. */
class Bed implements AsyncDisposable {
  mostRunning = 0;
  readonly #names: BedNames;
  readonly #stack = new AsyncDisposableStack();
  readonly #waiting: (() => void)[] = [];
  #bed: EnvoyBed | undefined;

  constructor(names: BedNames) {
    this.#names = names;
  }

  static async start(
    { maxInFlight, lease, ...names }: BedNames & { readonly maxInFlight: number; readonly lease: string },
  ): Promise<Bed> {
    const amount = `algorithm: concurrency, max_in_flight: ${maxInFlight}, lease: ${lease}`;
    const limit = `metadata: { taken: 1 }, rate_limit: { ${amount} }`;
    const nested = `descriptors: [{ key: request_id, identifies: true, ${limit} }]`;
    const rule = `{ key: account, ${names.named ? nested : limit} }`;
    const bed = new Bed(names);
    bed.#bed = bed.#stack.use(
      await EnvoyBed.start({
        rules: { "shop.yaml": `domain: shop\ndescriptors: [${rule}]\n` },
        env: { RESPONSE_DYNAMIC_METADATA: "true" },
        answer: () => bed.#run(),
        config: (places) =>
          shippedConfig(places, (key, value) => {
            if (key === "http_filters" && Array.isArray(value)) {
              return [documented("envoy-set-metadata-filter"), ...value];
            }
            if (key === "use_remote_address") return names.chosenId === undefined;
            return key === "routes"
              ? [documented("envoy-per-route", names.named ? undefined : ofAccount)]
              : value;
          }),
      }),
    );
    bed.#stack.defer(() => bed.finish(Infinity));
    return bed;
  }

  get #running(): EnvoyBed {
    if (this.#bed === undefined) throw new Error("Cannot use the bed: it is not started");
    return this.#bed;
  }

  /** Requests that run in the application. */
  get running(): number {
    return this.#waiting.length;
  }

  /** The log of Envoy. */
  get envoyLog(): readonly string[] {
    return this.#running.envoy.stderrLines;
  }

  /** Sends requests of one account in parallel; their statuses come as they end. */
  send(count: number): { readonly statuses: readonly number[]; readonly ended: Promise<unknown> } {
    const statuses: number[] = [];
    const headers = new Headers({ "x-account": "bob" });
    const { chosenId } = this.#names;
    if (chosenId !== undefined) headers.set("x-request-id", chosenId);
    const one = async () => void statuses.push(await this.#running.status("edge", "/", { headers }));
    // Those of a killed Envoy fail.
    const ended = Promise.allSettled(Array.from({ length: count }, one));
    return { statuses, ended };
  }

  /** Lets so many requests end. */
  finish(count: number): void {
    for (const finish of this.#waiting.splice(0, count)) finish();
  }

  /** Lets so many of the latest requests end. */
  finishNewest(count: number): void {
    for (const finish of this.#waiting.splice(-count)) finish();
  }

  async killEnvoy(): Promise<void> {
    await this.#running.envoy.kill();
  }

  async restartEnvoy(): Promise<void> {
    await this.#running.restartEnvoy();
  }

  /** A counter of the rule. */
  async stat(name: string): Promise<number> {
    const rule = `shop.account${this.#names.named ? ".request_id" : ""}`;
    return (await this.#running.weir.stats())[`ratelimit.service.rate_limit.${rule}.${name}`] ?? 0;
  }

  /** The calls in flight, asked for without taking one. */
  async used(): Promise<number> {
    const entries = [{ key: "account", value: "bob" }];
    if (this.#names.named) entries.push({ key: "request_id", value: "asked" });
    const descriptors = [{ entries, hitsAddend: 0 }];
    const { body } = await this.#running.weir.ask({ domain: "shop", descriptors });
    const [{ currentLimit, limitRemaining = 0 }] = Object(body).statuses;
    return currentLimit.requestsPerUnit - limitRemaining;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }

  async #run(): Promise<Response> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.mostRunning = Math.max(this.mostRunning, this.running);
    await promise;
    return new Response("done");
  }
}

/** Leaves out the entries with the name of the request. */
function ofAccount(key: unknown, value: unknown): unknown {
  if (key !== "actions" || !Array.isArray(value)) return value;
  return value.filter((action) => Object(action).request_headers?.descriptor_key === "account");
}

/** An example of the page. */
function documented(example: string, change: (key: unknown, value: unknown) => unknown = unchanged): unknown {
  const [, text = ""] = new RegExp(`\`\`\`yaml example=${example}\n(.*?)\`\`\``, "s").exec(PAGE) ?? [];
  return parse(text, change);
}

function unchanged(_: unknown, value: unknown): unknown {
  return value;
}

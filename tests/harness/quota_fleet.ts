import { type Envoy, startEnvoy } from "./envoy.ts";
import { shippedConfig } from "./envoy_bed.ts";
import { startTcpRelay, type TcpRelay } from "./tcp_relay.ts";

const STEP_MS = 10;
/** The most that is sent after a pause of this process; the rest is not offered. */
const MAX_STEPS = 10;

/** Requests of one second. */
interface EdgeSecond {
  /** As many as there should be. */
  due: number;
  offered: number;
  passed: number;
  refused: number;
  failed: number;
}

/** Envoys with the shipped configuration of quotas before one server, each with its own load and its own way to a Weir. */
export class QuotaFleet implements AsyncDisposable {
  readonly edges: readonly QuotaEdge[];
  readonly #startedAt: number;
  readonly #stack: AsyncDisposableStack;

  private constructor(edges: readonly QuotaEdge[], startedAt: number, stack: AsyncDisposableStack) {
    this.edges = edges;
    this.#startedAt = startedAt;
    this.#stack = stack;
  }

  /** Starts an Envoy for each address of Weir's gRPC port. */
  static async start(weirs: readonly string[], account = "a"): Promise<QuotaFleet> {
    await using stack = new AsyncDisposableStack();
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const upstream = stack.use(Deno.serve(quiet, () => new Response("upstream")));
    const startedAt = performance.now();
    const edges: QuotaEdge[] = [];
    for (const [index, weir] of weirs.entries()) {
      const name = `edge-${index + 1}`;
      const relay = stack.use(await startTcpRelay(portOf(weir)));
      const places = { weir: relay.url, upstream: `127.0.0.1:${upstream.addr.port}` };
      const named = (_: unknown, value: unknown) => value === "edge-1" ? name : value;
      const envoy = stack.use(await startEnvoy(shippedConfig(places, named, "envoy-quota.yaml")));
      edges.push(stack.use(new QuotaEdge({ name, envoy, relay, account, startedAt })));
    }
    return new QuotaFleet(edges, startedAt, stack.move());
  }

  /** Milliseconds since the start. */
  get now(): number {
    return performance.now() - this.#startedAt;
  }

  /** Whole seconds since the start. */
  get second(): number {
    return Math.floor(this.now / 1_000);
  }

  /** Sets the requests per second of each Envoy. */
  offer(...rates: readonly number[]): void {
    for (const [index, edge] of this.edges.entries()) edge.rate = rates[index] ?? 0;
  }

  /** Leads the Envoys to another Weir; streams that are open go on. */
  lead(weir: string): void {
    for (const { relay } of this.edges) relay.targetPort = portOf(weir);
  }

  /** Requests per second, from a second on and before another one. */
  count(key: keyof EdgeSecond, from: number, to: number): number[] {
    const seconds = Array.from({ length: to - from }, (_, index) => from + index);
    return seconds.map((second) => this.edges.reduce((sum, edge) => sum + edge.of(second)[key], 0));
  }

  /** The numbers of all seconds, for a failure. */
  report(): string {
    const rows = this.edges.map(({ name, seconds }) => {
      const all = (key: keyof EdgeSecond) =>
        Array.from({ length: this.second }, (_, index) => seconds[index]?.[key] ?? 0).join(" ");
      return `${name}\n  offered ${all("offered")}\n  passed ${all("passed")}\n  failed ${all("failed")}`;
    });
    return `second ${this.second}, passed in sum ${this.count("passed", 0, this.second).join(" ")}\n${
      rows.join("\n")
    }`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

interface QuotaEdgeOptions {
  readonly name: string;
  readonly envoy: Envoy;
  readonly relay: TcpRelay;
  readonly account: string;
  readonly startedAt: number;
}

/** An Envoy with its load. */
class QuotaEdge implements AsyncDisposable {
  readonly name: string;
  readonly envoy: Envoy;
  readonly relay: TcpRelay;
  /** By the second in which the response came, or the request was sent. */
  readonly seconds: EdgeSecond[] = [];
  /** Requests per second. */
  rate = 0;
  readonly #startedAt: number;
  readonly #url: string;
  readonly #account: string;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #waiting = new Set<Promise<void>>();
  #steppedAt: number;
  #due = 0;

  constructor({ name, envoy, relay, account, startedAt }: QuotaEdgeOptions) {
    this.name = name;
    this.envoy = envoy;
    this.relay = relay;
    this.#url = `http://${envoy.address("edge").replace("0.0.0.0", "127.0.0.1")}/`;
    this.#account = account;
    this.#startedAt = startedAt;
    this.#steppedAt = performance.now();
    this.#timer = setInterval(() => this.#step(), STEP_MS);
  }

  /** The requests of a second. */
  of(second: number): EdgeSecond {
    return this.seconds[second] ??= { due: this.rate, offered: 0, passed: 0, refused: 0, failed: 0 };
  }

  /** The status of one request for an account, which is not counted. */
  async ask(account: string): Promise<number> {
    const response = await fetch(this.#url, { headers: { "x-account": account } });
    await response.body?.cancel();
    return response.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#waiting);
  }

  #step(): void {
    const now = performance.now();
    this.#due += this.rate * Math.min(now - this.#steppedAt, STEP_MS * MAX_STEPS) / 1_000;
    this.#steppedAt = now;
    for (; this.#due >= 1; this.#due--) {
      this.#now().offered++;
      const asked = this.#count();
      this.#waiting.add(asked);
      void asked.finally(() => this.#waiting.delete(asked));
    }
  }

  async #count(): Promise<void> {
    try {
      const status = await this.ask(this.#account);
      this.#now()[status === 200 ? "passed" : status === 429 ? "refused" : "failed"]++;
    } catch {
      this.#now().failed++;
    }
  }

  #now(): EdgeSecond {
    return this.of(Math.floor((performance.now() - this.#startedAt) / 1_000));
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

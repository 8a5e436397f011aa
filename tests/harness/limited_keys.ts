import { join } from "node:path";
import { until } from "./until.ts";
import type { WebhookProcess } from "./webhook_process.ts";
import { WebhookReceiver } from "./webhook_receiver.ts";

const RULES = `domain: killed
descriptors:
- key: user
  events: [over_limit]
  rate_limit: { unit: second, unit_multiplier: 5, requests_per_unit: 0 }
`;
/** Keys that are refused. */
const KEYS = 10;
const ENDED_MS = 120_000;

/** An event as it came, and under which delivery. */
interface LimitEvent {
  readonly delivery: string;
  readonly kind: string;
  readonly episode: string;
  readonly key: string;
  readonly freeAt: string | undefined;
  readonly refusedHits: number | undefined;
}

/** Keys whose every call is refused, in a Weir whose processes are killed, and what is reported of them. */
export class LimitedKeys implements AsyncDisposable {
  readonly #receiver: WebhookReceiver;
  readonly #folder: string;
  /** Calls by key. */
  readonly #calls = new Map<string, number>();

  private constructor(receiver: WebhookReceiver, folder: string) {
    this.#receiver = receiver;
    this.#folder = folder;
  }

  /** Starts what receives the events, and writes the rules. */
  static async open(): Promise<LimitedKeys> {
    const folder = await Deno.makeTempDir({ prefix: "weir_limits_" });
    await Deno.mkdir(join(folder, "root", "config"), { recursive: true });
    await Deno.writeTextFile(join(folder, "root", "config", "killed.yaml"), RULES);
    return new LimitedKeys(await WebhookReceiver.start(), folder);
  }

  /** The settings of a process that has the rules. */
  get env(): Readonly<Record<string, string>> {
    return { RUNTIME_ROOT: join(this.#folder, "root"), RATE_LIMIT_EVENTS_MAX_PER_SECOND: "1000" };
  }

  /** Lets the events go to the receiver. */
  async subscribe(weir: Pick<WebhookProcess, "endpoint">): Promise<void> {
    await weir.endpoint(this.#receiver, "/limits", { events: ["ratelimit.*"] });
  }

  /** Makes a call that is refused, unless the process is gone. */
  async ask({ base }: Pick<WebhookProcess, "base">, n: number): Promise<void> {
    const key = `user${n % KEYS}`;
    this.#calls.set(key, (this.#calls.get(key) ?? 0) + 1);
    const body = JSON.stringify({
      domain: "killed",
      descriptors: [{ entries: [{ key: "user", value: key }] }],
    });
    const response = await fetch(`${base}/json`, { method: "POST", body }).catch(() => undefined);
    await response?.body?.cancel().catch(() => {});
  }

  /** Waits until each episode that was reported has ended; answers what is wrong. */
  async problems(): Promise<string[]> {
    const of = (kind: string) =>
      new Set(this.#events.filter((one) => one.kind === kind).map(({ episode }) => episode));
    const begun = () => of("ratelimit.over_limit");
    await until(
      "every episode to end",
      () => begun().size > 0 && begun().size === of("ratelimit.over_limit.ended").size,
      {
        deadlineMs: ENDED_MS,
        intervalMs: 100,
      },
    );
    const problems = [...this.#receiver.problems];
    const once = (what: string, events: readonly LimitEvent[], identity: (event: LimitEvent) => string) => {
      for (const [name, same] of Map.groupBy(events, identity)) {
        const deliveries = new Set(same.map(({ delivery }) => delivery)).size;
        if (deliveries !== 1) problems.push(`${what} ${name} was reported ${deliveries} times`);
      }
    };
    const begins = this.#events.filter(({ kind }) => kind === "ratelimit.over_limit");
    const ends = this.#events.filter(({ kind }) => kind === "ratelimit.over_limit.ended");
    once("the window", begins, ({ key, freeAt }) => `${key} ${freeAt}`);
    once("the end", ends, ({ episode }) => episode);
    const unique = [...new Map(ends.map((event) => [event.episode, event])).values()];
    for (const [key, own] of Map.groupBy(unique, (event) => event.key)) {
      const refused = own.reduce((sum, { refusedHits = 0 }) => sum + refusedHits, 0);
      const calls = this.#calls.get(key) ?? 0;
      if (refused > calls) problems.push(`${key} was refused ${refused} times in ${calls} calls`);
      if (own.some(({ refusedHits = 0 }) => refusedHits < 1)) problems.push(`${key} was refused no time`);
    }
    return problems;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  get #events(): readonly LimitEvent[] {
    return this.#receiver.receptions.map(({ id, body }) => {
      const { event, data } = JSON.parse(body);
      const { episode, entries, freeAt, refusedHits } = data;
      return { delivery: id, kind: event, episode, key: entries?.[0]?.value, freeAt, refusedHits };
    });
  }
}

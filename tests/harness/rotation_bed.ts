import { assert, assertEquals } from "#assert";
import { FakeClock } from "./fake_clock.ts";
import { decide, GrpcClient } from "./grpc_client.ts";
import { SecretFolder } from "./secret_folder.ts";
import { ServeFixture } from "./serve_fixture.ts";
import { SteadyCalls } from "./steady_calls.ts";
import { until } from "./until.ts";

/** A cache whose credentials change. */
export interface RotatedCache {
  /** Settings with the files that `write` writes, by their names. */
  readonly env: (file: (name: string) => string) => Readonly<Record<string, string>>;
  /** The text of each file for one of the passwords. */
  readonly files: (password: string) => Readonly<Record<string, string>>;
  /** Makes it the only password. */
  readonly change: (password: string) => Promise<unknown>;
  /** Breaks all connections of clients. */
  readonly kill: () => Promise<unknown>;
}

/** The first password, and the one that replaces it. */
export const PASSWORDS = ["first-pa55word", "second-pa55word"] as const;
const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: year, requests_per_unit: 1000000}\n",
};
/** Limit of the recovery after a change of the file. */
const RECOVERY_MS = 1_000;
/** Each has its own connection, so that every thread has some of them. */
const CALLERS = 8;
/** Calls that have to succeed to show that nothing fails. */
const STEADY_CALLS = 100;
const UNAVAILABLE = 14;
const PAUSE_MS = 10;

/** A service whose cache changes its password under load; time does not pass faster than that of the machine. */
export class RotationBed implements AsyncDisposable {
  readonly weir: ServeFixture;
  readonly #cache: RotatedCache;
  readonly #folder: SecretFolder;
  readonly #clock: FakeClock;
  readonly #load: Promise<unknown>;
  readonly #ending = new AbortController();
  readonly #calls = new SteadyCalls(CALLERS);

  static async open(cache: RotatedCache, env: Readonly<Record<string, string>> = {}): Promise<RotationBed> {
    const folder = new SecretFolder();
    for (const [name, text] of Object.entries(cache.files(PASSWORDS[0]))) folder.write(name, text);
    const clock = FakeClock.byTurns();
    const settings = { BACKEND_TYPE: "kv", ...cache.env((name) => folder.file(name)), ...env };
    const weir = await ServeFixture.start({ rules: RULES, env: settings, clock });
    return new RotationBed(cache, folder, weir, clock);
  }

  private constructor(cache: RotatedCache, folder: SecretFolder, weir: ServeFixture, clock: FakeClock) {
    this.#cache = cache;
    this.#folder = folder;
    this.weir = weir;
    this.#clock = clock;
    this.#load = Promise.all(Array.from({ length: CALLERS }, (_, caller) => this.#call(caller)));
  }

  /** The time by the clock of the service. */
  get elapsedMs(): number {
    return this.#clock.elapsed();
  }

  /** Writes the files with the new password; returns when the clock showed it. */
  write(): number {
    const files = this.#cache.files(PASSWORDS[1]);
    for (const [name, text] of Object.entries(files)) this.#folder.write(name, text);
    return this.#clock.elapsed();
  }

  /** Makes the new password the only one of the cache. */
  async change(): Promise<void> {
    await this.#cache.change(PASSWORDS[1]);
  }

  /** Breaks all connections and waits until that was noticed. */
  async kill(): Promise<void> {
    const opened = await this.#opened();
    await this.#cache.kill();
    // Without the right password no other is opened.
    await until("the end of the connections", async () => {
      return this.#calls.failures.length > 0 || await this.#opened() > opened;
    });
  }

  /** Waits until the calls of all callers succeed, within the limit after `since`. */
  async recovered(since = this.#clock.elapsed()): Promise<void> {
    await this.#calls.recover();
    const tookMs = this.#clock.elapsed() - since;
    assert(tookMs <= RECOVERY_MS, `calls succeed within ${RECOVERY_MS} ms, not after ${tookMs} ms`);
  }

  /** Calls succeed, and none has failed. */
  async goesOn(): Promise<void> {
    await this.#calls.goOn(STEADY_CALLS);
  }

  /** Waits until calls fail because of the password. */
  async refuses(): Promise<void> {
    await until("the refusal", () => this.#calls.failures.some((text) => /WRONGPASS/.test(text)));
  }

  /** Waits until so many lines of the log have this text. */
  async logs(message: string, count = 1): Promise<void> {
    await until(message, () => this.weir.log.filter((line) => line.includes(message)).length >= count);
  }

  get #isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  async #opened(): Promise<number> {
    return (await this.weir.stats())["ratelimit.kv_pool.cx_total"] ?? 0;
  }

  async #call(caller: number): Promise<void> {
    using client = new GrpcClient(this.weir.grpcAddress, { "grpc.use_local_subchannel_pool": 1 });
    while (!this.#isOver) {
      const answer = await decide(client, "shop", `user=${caller}`);
      if (!("code" in answer)) {
        this.#calls.noteSuccess(caller);
        continue;
      }
      if (answer.code !== UNAVAILABLE) throw new Error(answer.details);
      this.#calls.noteFailure(answer.details);
      // Refusals are fast, and would keep the thread of the service busy.
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#load;
    await this.weir[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
    const log = this.weir.log.join("\n");
    assertEquals(PASSWORDS.filter((password) => log.includes(password)), []);
  }
}

import type { Clock } from "../../src/base/clock.ts";
import type {
  Assignment,
  BucketUsage,
  QuotaReport,
  QuotaStream,
  QuotaStreams,
  StreamRefusal,
  TokenAssignment,
} from "../../src/quota/quota_stream.ts";
import type { Entry } from "../../src/ratelimit/request.ts";

const REPORT_MS = 5_000;

/** Options of a model of Envoy. */
interface QuotaEnvoyOptions {
  readonly clock: Clock;
  readonly name?: string | undefined;
  readonly domain: string;
  /** The delay of the next message in either direction, in milliseconds. */
  readonly delay: () => number;
  /** True if all requests are refused without an assignment; they pass if absent. */
  readonly isClosed?: boolean;
  /** Called after an assignment came into force. */
  readonly applied?: () => void;
  /** True if its connection confirms what has arrived. */
  readonly isDirect?: boolean;
}

/** A bucket of the model, with the requests since the last report. */
interface ModelBucket {
  readonly entries: readonly Entry[];
  demand: number;
  allowed: number;
  denied: number;
  countedAt: number;
  reportedAt: number | undefined;
  assignment: Exclude<Assignment, { kind: "abandon" }> | undefined;
  endsAt: number;
}

/**
 * Envoy as a client of quotas: reports every five seconds, applies what arrives, forgets it after its time to live, and
 * keeps it without a stream. Requests flow evenly.
 */
export class QuotaEnvoy {
  readonly received: (readonly [id: string, assignment: Assignment])[] = [];
  readonly refusals: (StreamRefusal | undefined)[] = [];
  readonly #options: QuotaEnvoyOptions;
  readonly #buckets = new Map<string, ModelBucket>();
  #link: Link | undefined;
  #cancelTick = () => {};
  #silentUntil = -Infinity;
  #reconnect = () => {};

  constructor(options: QuotaEnvoyOptions) {
    this.#options = options;
    this.#tickIn(REPORT_MS);
  }

  /** Opens a stream to a server, which the next report uses; the stream before breaks with all that is on its way. */
  connect(streams: QuotaStreams): void {
    this.disconnect();
    const { clock, delay, name, isDirect } = this.#options;
    this.#link = new Link(clock, delay, (link) => {
      return streams.open({
        name,
        actions: {
          send: (id, assignment) => link.toClient(() => this.#apply(id, assignment)),
          flush: () => true,
          confirm: (arrived) => {
            if (isDirect !== true) return false;
            link.toClient(() => clock.after(delay(), () => link.confirm(arrived)));
            return true;
          },
        },
        end: (refusal) => {
          this.refusals.push(refusal);
          link.break();
        },
      });
    });
  }

  /** Calls `connect` at the next time of a report. */
  connectLater(connect: () => void): void {
    this.#reconnect = connect;
  }

  /** Breaks the stream; messages on their way are lost, and the server notices it later. */
  disconnect(noticedAfterMs = 0): void {
    this.#link?.break(noticedAfterMs);
    this.#link = undefined;
  }

  /** The process ends: it enforces nothing, and its requests end. */
  kill(noticedAfterMs = 0): void {
    this.#cancelTick();
    this.#buckets.clear();
    this.disconnect(noticedAfterMs);
  }

  /** Reports nothing for some time. */
  silence(ms: number): void {
    this.#silentUntil = this.#options.clock.elapsed() + ms;
  }

  /** Sets the requests per second of a bucket; the first ones are reported immediately. */
  demand(id: string, entries: readonly Entry[], perSecond: number): void {
    const { clock } = this.#options;
    const bucket = this.#buckets.get(id);
    if (bucket !== undefined) {
      this.#count(bucket);
      bucket.demand = perSecond;
      return;
    }
    const now = clock.elapsed();
    const started: ModelBucket = {
      entries,
      demand: perSecond,
      allowed: this.#options.isClosed === true ? 0 : 1,
      denied: this.#options.isClosed === true ? 1 : 0,
      countedAt: now,
      reportedAt: undefined,
      assignment: undefined,
      endsAt: 0,
    };
    this.#buckets.set(id, started);
    if (this.#link !== undefined) this.#report([[id, started]]);
  }

  /** The assignment of a bucket that is in force. */
  inForce(id: string): ModelBucket["assignment"] {
    const bucket = this.#buckets.get(id);
    return bucket !== undefined && this.#options.clock.elapsed() < bucket.endsAt
      ? bucket.assignment
      : undefined;
  }

  /** The tokens per second that assignments in force give in all buckets. */
  tokensPerSecond(): number {
    let sum = 0;
    for (const id of this.#buckets.keys()) {
      const assignment = this.inForce(id);
      if (assignment?.kind === "tokens") sum += rateOf(assignment);
    }
    return sum;
  }

  /** Requests per second that are refused now. */
  refusedPerSecond(): number {
    let sum = 0;
    for (const [id, { demand }] of this.#buckets) sum += demand - this.#passed(demand, this.inForce(id));
    return sum;
  }

  #tickIn(delayMs: number): void {
    this.#cancelTick = this.#options.clock.after(delayMs, () => {
      this.#tickIn(REPORT_MS);
      this.#reconnect();
      this.#reconnect = () => {};
      if (this.#options.clock.elapsed() < this.#silentUntil) return;
      if (this.#link !== undefined) this.#report([...this.#buckets]);
    });
  }

  #report(buckets: readonly (readonly [string, ModelBucket])[]): void {
    const now = this.#options.clock.elapsed();
    const usages = buckets.map(([id, bucket]): BucketUsage => {
      this.#count(bucket);
      const { entries, reportedAt } = bucket;
      const [allowed, denied] = [Math.floor(bucket.allowed), Math.floor(bucket.denied)];
      bucket.allowed -= allowed;
      bucket.denied -= denied;
      bucket.reportedAt = now;
      const elapsedSeconds = reportedAt === undefined ? 0 : Math.floor((now - reportedAt) / 1_000);
      return { id, pairs: () => entries, allowed, denied, elapsedSeconds };
    });
    this.#link?.toServer({ domain: this.#options.domain, usages });
  }

  /** Adds the requests since the last count, with what is in force since then. */
  #count(bucket: ModelBucket): void {
    const now = this.#options.clock.elapsed();
    const { demand, assignment, endsAt } = bucket;
    const until = Math.min(Math.max(endsAt, bucket.countedAt), now);
    const limited = (until - bucket.countedAt) / 1_000;
    const passed = this.#passed(demand, assignment) * limited +
      this.#passed(demand, undefined) * (now - until) / 1_000;
    bucket.allowed += passed;
    bucket.denied += demand * (now - bucket.countedAt) / 1_000 - passed;
    bucket.countedAt = now;
  }

  #passed(demand: number, assignment: ModelBucket["assignment"]): number {
    if (assignment?.kind === "tokens") return Math.min(demand, rateOf(assignment));
    const isClosed = assignment === undefined ? this.#options.isClosed === true : assignment.kind === "deny";
    return isClosed ? 0 : demand;
  }

  #apply(id: string, assignment: Assignment): void {
    this.received.push([id, assignment]);
    const bucket = this.#buckets.get(id);
    if (bucket === undefined) return;
    this.#count(bucket);
    if (assignment.kind === "abandon") {
      this.#buckets.delete(id);
    } else {
      bucket.assignment = assignment;
      bucket.endsAt = this.#options.clock.elapsed() + Math.floor(assignment.seconds) * 1_000;
    }
    this.#options.applied?.();
  }
}

/** The tokens per second of an assignment; a token a year is none. */
export function rateOf({ tokens, fillSeconds }: TokenAssignment): number {
  return fillSeconds >= 31_536_000 ? 0 : tokens / fillSeconds;
}

/** A stream whose messages take time and stay in order. */
class Link {
  readonly #clock: Clock;
  readonly #delay: () => number;
  readonly #stream: QuotaStream;
  #isOpen = true;
  #serverAt = 0;
  #clientAt = 0;

  constructor(clock: Clock, delay: () => number, open: (link: Link) => QuotaStream) {
    this.#clock = clock;
    this.#delay = delay;
    this.#stream = open(this);
  }

  toServer(report: QuotaReport): void {
    this.#serverAt = this.#in(this.#serverAt, () => void this.#stream.report(report));
  }

  toClient(run: () => void): void {
    this.#clientAt = this.#in(this.#clientAt, run);
  }

  confirm(arrived: () => void): void {
    if (this.#isOpen) arrived();
  }

  break(noticedAfterMs = 0): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#clock.after(noticedAfterMs, () => this.#stream.end());
  }

  #in(after: number, run: () => void): number {
    const now = this.#clock.elapsed();
    const at = Math.max(after, now + this.#delay());
    this.#clock.after(at - now, () => {
      if (this.#isOpen) run();
    });
    return at;
  }
}

import { FAILING_AFTER } from "../model/endpoint_health.ts";
import type { AttemptReport } from "./metrics.ts";
import type { DueEndpoint } from "../store/operations/delivery_claims.ts";
import type { ClaimedDelivery } from "../store/store.ts";

/** A number of attempts of an endpoint that may begin. */
export interface ClaimRequest {
  readonly endpointId: string;
  readonly max: number;
}

/** An attempt in flight. */
export interface Flight {
  readonly claimed: ClaimedDelivery;
  /** By the clock's `elapsed`. */
  readonly startedAt: number;
}

/** The attempts in flight. */
export interface Running {
  readonly flights: Iterable<Flight>;
  of(endpointId: string): number;
}

/**
 * By the last attempt of an endpoint: no answer (it timed out, or there was none yet), a failure or a success after
 * `PROMPT_MS`, or a success before. Endpoints of a standing and of those before it together leave `RESERVED` places free.
 */
type Standing = "silent" | "slow" | "prompt";

/** The places left for each standing, and for endpoints with attempts in flight. */
type Room = Record<Standing | "further", number>;

interface Candidate {
  readonly id: string;
  readonly standing: Standing;
  readonly runs: number;
  readonly free: number;
  /** Places given. */
  max: number;
}

interface Known {
  readonly standing: Standing;
  /** Number of times that its share was halved. */
  readonly halvings: number;
  /** Since its last success. */
  readonly failures: number;
  /** When it may be attempted again, by the clock's `elapsed`. */
  readonly pausedUntil: number;
}

/** A longer attempt holds its place at the cost of other endpoints. */
const PROMPT_MS = 1_000;
/**
 * Shares of all places. The first attempt of a new endpoint may use a part of what is reserved from silent ones. No
 * endpoint gets a further place while fewer than `further` are free: many that begin to hang would take them all.
 */
const RESERVED = { silent: 1 / 4, probe: 1 / 8, slow: 1 / 16, further: 1 / 16 } as const;
/** New endpoints use that part slowly, this share of all places in `PROBE_MS`, so that it lasts for a timeout. */
const PROBE_SHARE = 1 / 500;
const PROBE_MS = 250;
const MOST_HALVINGS = 10;
/** Pauses between the attempts of an endpoint that is failing; they double with each failure. */
const PAUSES_MS = [1_000, 30_000] as const;
/** Time between attempts of all endpoints with so many failures in a row, once they have used the burst. */
const PROBED_AFTER = 3;
const PROBE_INTERVAL_MS = 50;
const PROBE_BURST_MS = 1_000;
/** The endpoints attempted least recently are forgotten. */
const MOST_KNOWN = 10_000;

/**
 * Divides the places for attempts between endpoints. A failure halves the share of its endpoint, down to one attempt at
 * a time, and a success doubles it. After `FAILING_AFTER` failures in a row there are pauses between the attempts; and
 * all endpoints that fail share a rate, so that however many they are, they use no noticeable part of the machine. A
 * reserve of places is kept for endpoints that answer. Each process learns separately, and after a start each endpoint
 * is new.
 */
export class EndpointShares {
  readonly #max: number;
  readonly #known = new Map<string, Known>();
  /** When the attempts of failing endpoints have used their rate, by the clock's `elapsed`. */
  #probedUntil = 0;
  #turn = 0;

  /** `max` is the number of places: attempts in flight over all endpoints. */
  constructor(max: number) {
    this.#max = max;
  }

  learn(
    { endpointId, result, status, errorKind, tookMs }: Pick<
      AttemptReport,
      "endpointId" | "result" | "status" | "errorKind" | "tookMs"
    >,
    elapsed: number,
  ): void {
    const isLate = tookMs > PROMPT_MS;
    const isSilent = errorKind === "timeout" || (status === undefined && isLate);
    const isFailed = result !== "acknowledged";
    const before = this.#known.get(endpointId);
    const halvings = (before?.halvings ?? 0) + (isFailed ? 1 : -1);
    const failures = isFailed ? (before?.failures ?? 0) + 1 : 0;
    const ownUntil = elapsed + pauseMs(failures);
    this.#known.delete(endpointId);
    this.#known.set(endpointId, {
      standing: isSilent ? "silent" : isLate || isFailed ? "slow" : "prompt",
      halvings: Math.max(0, Math.min(halvings, MOST_HALVINGS)),
      failures,
      pausedUntil: Math.max(ownUntil, this.#sharedUntil(failures, before?.pausedUntil ?? 0, elapsed)),
    });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }

  /** True if an endpoint is failing, and its next attempt has to wait. */
  isPaused(endpointId: string, elapsed: number): boolean {
    return (this.#known.get(endpointId)?.pausedUntil ?? 0) > elapsed;
  }

  /** The next attempt of an endpoint does not wait. */
  endPause(endpointId: string): void {
    const known = this.#known.get(endpointId);
    if (known !== undefined) this.#known.set(endpointId, { ...known, pausedUntil: 0 });
  }

  /** True if no attempt of an endpoint has ended yet. */
  isNew(endpointId: string): boolean {
    return !this.#known.has(endpointId);
  }

  /** The most attempts of an endpoint that may be in flight. */
  share({ id, concurrency }: Pick<DueEndpoint, "id" | "concurrency">): number {
    return Math.max(1, concurrency >> (this.#known.get(id)?.halvings ?? 0));
  }

  /**
   * The attempts that each endpoint may begin, `most` together. `waiting` is in order of waiting, longest first.
   * Places are given one by one in turn, beginning with another endpoint each time.
   */
  claimRequests(
    waiting: Iterable<DueEndpoint>,
    running: Running,
    most: number,
    elapsed: number,
  ): readonly ClaimRequest[] {
    const places = this.#places(running, most, elapsed);
    const chosen: Candidate[] = [];
    const probes: string[] = [];
    const room = { ...places.room };
    for (const endpoint of waiting) {
      if (room.prompt <= 0) break;
      const { id } = endpoint;
      const runs = running.of(id);
      const free = this.share(endpoint) - runs;
      if (free <= 0) continue;
      const standing = this.#standing(id);
      if (took(room, standing, runs === 0)) chosen.push({ id, standing, runs, free, max: 0 });
      else if (runs === 0 && this.isNew(id)) probes.push(id);
    }
    this.#giveInTurn(chosen, places.room);
    const requests = chosen.filter(({ max }) => max > 0).map(({ id, max }) => ({ endpointId: id, max }));
    // The latest first: where there are more new endpoints than places, most of those that wait for long hang.
    const left = Math.max(0, Math.min(places.probes, places.room.prompt));
    const probing = probes.slice(-left).slice(0, left);
    return [...requests, ...probing.map((endpointId) => ({ endpointId, max: 1 }))];
  }

  /**
   * Until when an endpoint waits for other failing ones. An attempt that did not wait, such as the last one of a
   * delivery, uses nothing of the rate: otherwise an endpoint with many of them would make all others wait for hours.
   */
  #sharedUntil(failures: number, pausedUntil: number, elapsed: number): number {
    if (failures < PROBED_AFTER) return 0;
    if (pausedUntil > elapsed) return pausedUntil;
    this.#probedUntil = Math.max(this.#probedUntil, elapsed) + PROBE_INTERVAL_MS;
    return this.#probedUntil - PROBE_BURST_MS;
  }

  #standing(endpointId: string): Standing {
    return this.#known.get(endpointId)?.standing ?? "silent";
  }

  /** The places left for each standing, and for first attempts of new endpoints. */
  #places({ flights }: Running, most: number, elapsed: number) {
    const held: Record<Standing, number> = { silent: 0, slow: 0, prompt: 0 };
    let fresh = 0;
    for (const { claimed, startedAt } of flights) {
      const { id } = claimed.endpoint;
      held[this.#standing(id)]++;
      if (elapsed - startedAt < PROBE_MS && this.isNew(id)) fresh++;
    }
    // However few places there are, one is reserved; a single place is for all.
    const leaves = (part: number) => Math.max(1, this.#max - Math.ceil(this.#max * part));
    const all = held.silent + held.slow + held.prompt;
    const room: Room = {
      further: leaves(RESERVED.further) - all,
      prompt: Math.min(most, this.#max - all),
      slow: leaves(RESERVED.slow) - held.silent - held.slow,
      silent: leaves(RESERVED.silent) - held.silent,
    };
    const probing = Math.min(fresh, Math.max(0, -room.silent));
    const probes = Math.ceil(this.#max * PROBE_SHARE) - probing;
    return { room, probes: Math.min(probes, leaves(RESERVED.probe) - held.silent) };
  }

  #giveInTurn(chosen: readonly Candidate[], room: Room): void {
    const first = chosen.length === 0 ? 0 : this.#turn++ % chosen.length;
    const turns = [...chosen.slice(first), ...chosen.slice(0, first)];
    for (let round = 0, isAnyLeft = true; isAnyLeft; round++) {
      isAnyLeft = false;
      for (const one of turns) {
        if (one.free <= round || !took(room, one.standing, one.runs + round === 0)) continue;
        one.max = round + 1;
        isAnyLeft = true;
      }
    }
  }
}

function pauseMs(failures: number): number {
  const [firstMs, longestMs] = PAUSES_MS;
  return failures < FAILING_AFTER ? 0 : Math.min(firstMs * 2 ** (failures - FAILING_AFTER), longestMs);
}

/** Takes a place from a standing and from those above it; false when one of them has none left. */
function took(room: Room, standing: Standing, isFirst: boolean): boolean {
  const [isSilent, isPrompt] = [standing === "silent", standing === "prompt"];
  if (room.prompt <= 0 || (!isFirst && room.further <= 0)) return false;
  if ((!isPrompt && room.slow <= 0) || (isSilent && room.silent <= 0)) return false;
  room.prompt--;
  room.further--;
  if (!isPrompt) room.slow--;
  if (isSilent) room.silent--;
  return true;
}

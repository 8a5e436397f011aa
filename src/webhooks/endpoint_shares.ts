import type { AttemptReport } from "./dispatch_figures.ts";
import type { Flight } from "./in_flight.ts";
import type { DueEndpoint } from "./store.ts";

/** How many attempts of an endpoint may begin. */
export interface Want {
  readonly endpointId: string;
  readonly max: number;
}

/** The attempts that run. */
export interface Running {
  readonly flights: Iterable<Pick<Flight, "claimed" | "startedAt">>;
  /** How many run of an endpoint. */
  of(endpointId: string): number;
}

/**
 * How an endpoint has answered lately: not at all (it timed out, or was never tried), later than `PROMPT_MS`, or in
 * time. Each holds no more places, together with those before it, than `RESERVED` leaves.
 */
type Standing = "silent" | "slow" | "prompt";

interface Known {
  readonly standing: Standing;
  /** How often its share was halved. */
  readonly halvings: number;
}

/** An attempt that takes longer holds its place at the cost of others. */
const PROMPT_MS = 1_000;
/** The part of all places that is kept from each; from new endpoints, of which nothing runs, less than from silent ones. */
const RESERVED = { silent: 1 / 4, probe: 1 / 8, slow: 1 / 16, prompt: 0 } as const;
/** New endpoints may take this part of all places from the reserve in each `PROBE_MS`, so that it lasts. */
const PROBE_SHARE = 1 / 500;
const PROBE_MS = 250;
const MOST_HALVINGS = 10;
/** Endpoints that are remembered, those that were attempted last. */
const MOST_KNOWN = 10_000;

/**
 * Shares the places for attempts between endpoints. The share of an endpoint is halved by each attempt that times out,
 * down to one attempt at a time, and doubled by each answer. Silent endpoints together leave a reserve to those that
 * answer. It is the view of one process, kept in memory: after a start every endpoint is new, and of several machines
 * each learns by its own attempts.
 */
export class EndpointShares {
  readonly #max: number;
  readonly #known = new Map<string, Known>();
  #turn = 0;

  /** At most `max` attempts run over all endpoints. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Learns from an attempt that is over. */
  learn({ endpointId, status, errorKind, tookMs }: AttemptReport): void {
    const isLate = tookMs > PROMPT_MS;
    const isSilent = errorKind === "timeout" || (status === undefined && isLate);
    // A failure that comes quickly holds no places, and says nothing about how the endpoint answers.
    if (!isSilent && status === undefined) return;
    const halvings = (this.#known.get(endpointId)?.halvings ?? 0) + (isSilent ? 1 : -1);
    this.#known.delete(endpointId);
    this.#known.set(endpointId, {
      standing: isSilent ? "silent" : isLate ? "slow" : "prompt",
      halvings: Math.max(0, Math.min(halvings, MOST_HALVINGS)),
    });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }

  /** How many attempts of an endpoint may run at once. */
  share({ id, concurrency }: Pick<DueEndpoint, "id" | "concurrency">): number {
    return Math.max(1, concurrency >> (this.#known.get(id)?.halvings ?? 0));
  }

  /**
   * How many more attempts each of these endpoints may begin, `most` together; those that waited longest come first.
   * Where not all can have what they could, each gets one in turn, and another one begins the next time.
   */
  wants(waiting: Iterable<DueEndpoint>, running: Running, most: number, elapsed: number): readonly Want[] {
    const places = this.#places(running, most, elapsed);
    const chosen: { readonly id: string; readonly free: number; readonly standing: Standing }[] = [];
    const probes: string[] = [];
    const room = { ...places.room };
    for (const endpoint of waiting) {
      if (room.prompt <= 0) break;
      const { id } = endpoint;
      const runs = running.of(id);
      const free = this.share(endpoint) - runs;
      if (free <= 0) continue;
      const standing = places.standing(id);
      if (took(room, standing)) chosen.push({ id, free, standing });
      else if (runs === 0 && !this.#known.has(id)) probes.push(id);
    }
    const given = this.#inTurn(chosen, places.room);
    const wants = chosen.flatMap(({ id }, index) => {
      const max = given[index] ?? 0;
      return max === 0 ? [] : [{ endpointId: id, max }];
    });
    // Those that came last first: others may have waited behind endpoints that hang, and they are as many as those.
    const left = Math.max(0, Math.min(places.probes, places.room.prompt));
    const probing = probes.slice(-left).slice(0, left);
    return [...wants, ...probing.map((endpointId) => ({ endpointId, max: 1 }))];
  }

  /** What is left of the places for endpoints of each standing. */
  #places({ flights }: Running, most: number, elapsed: number) {
    const late = new Set<string>();
    const counted = new Map<string, number>();
    let fresh = 0;
    for (const { claimed, startedAt } of flights) {
      const { id } = claimed.endpoint;
      counted.set(id, (counted.get(id) ?? 0) + 1);
      if (elapsed - startedAt > PROMPT_MS) late.add(id);
      if (elapsed - startedAt < PROBE_MS && !this.#known.has(id)) fresh++;
    }
    const standing = (id: string): Standing => {
      const known = this.#known.get(id)?.standing ?? "silent";
      return known === "prompt" && late.has(id) ? "slow" : known;
    };
    const held: Record<Standing, number> = { silent: 0, slow: 0, prompt: 0 };
    for (const [id, count] of counted) held[standing(id)] += count;
    const leaves = (part: number) => this.#max - Math.floor(this.#max * part);
    const room: Record<Standing, number> = {
      prompt: Math.min(most, this.#max - held.silent - held.slow - held.prompt),
      slow: leaves(RESERVED.slow) - held.silent - held.slow,
      silent: leaves(RESERVED.silent) - held.silent,
    };
    const probing = Math.min(fresh, Math.max(0, -room.silent));
    const probes = Math.ceil(this.#max * PROBE_SHARE) - probing;
    return { standing, room, probes: Math.min(probes, leaves(RESERVED.probe) - held.silent) };
  }

  /** How many each gets, which is taken from the room. */
  #inTurn(
    chosen: readonly { readonly free: number; readonly standing: Standing }[],
    room: Record<Standing, number>,
  ): readonly number[] {
    const given = chosen.map(() => 0);
    const first = chosen.length === 0 ? 0 : this.#turn++ % chosen.length;
    for (let round = 0, isAnyLeft = true; isAnyLeft; round++) {
      isAnyLeft = false;
      for (let step = 0; step < chosen.length; step++) {
        const index = (first + step) % chosen.length;
        const one = chosen[index];
        if (one === undefined || one.free <= round || !took(room, one.standing)) continue;
        given[index] = round + 1;
        isAnyLeft = true;
      }
    }
    return given;
  }
}

/** Takes a place, which is one of every standing above as well; false where none is left. */
function took(room: Record<Standing, number>, standing: Standing): boolean {
  const taken = STANDINGS.slice(STANDINGS.indexOf(standing));
  if (taken.some((one) => room[one] <= 0)) return false;
  for (const one of taken) room[one]--;
  return true;
}

const STANDINGS: readonly Standing[] = ["silent", "slow", "prompt"];

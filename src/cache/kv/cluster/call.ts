import { errorText } from "../../../base/error_text.ts";
import type { Counted } from "../../../ratelimit/algorithms/taken.ts";
import type { Caller, Hit } from "../../../ratelimit/counter_cache.ts";
import type { SharedCacheOptions } from "../../shared_cache_options.ts";
import { noAnswer } from "../../server_connection.ts";
import { KvFailure } from "../node.ts";
import type { KvClusterNode, KvOperation } from "./node.ts";
import type { KvTopology } from "./slot_table.ts";
import type { KvClusterWaits } from "./waits.ts";
import { parseRedirect, slotOf } from "./slots.ts";

/** Waits before a redirected hit is sent on, by its redirections; nodes may take a moment to agree on a slot. */
const PAUSES_MS = [0, 0, 20, 50, 100];
/** Errors of a node that cannot serve now, unlike one that refuses a key. */
const NODE_STATE = /^(?:CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|TRYAGAIN)\b/;
/** Errors of a node begin with a word in capitals. */
const ERROR_REPLY = /^[A-Z]{2,} /;

/** What all calls share. */
export interface KvClusterCallOptions extends Pick<SharedCacheOptions, "timeoutMs" | "clock"> {
  readonly topology: KvTopology;
  readonly waits: KvClusterWaits;
  /** How many nodes a call asks at the same time; 0 for all. */
  readonly parallelism: number;
}

/** The hits of one node, by their positions in the call. */
interface Group {
  readonly node: KvClusterNode;
  readonly asking: boolean;
  readonly positions: number[];
}

/** What one call asks. */
export interface KvClusterQuestion<Asked, Answer> {
  readonly operation: KvOperation<Asked, Answer>;
  readonly hits: readonly Asked[];
  readonly caller: Caller | undefined;
  readonly startedAt: number;
}

/** One call to the cluster. Only a redirected hit is sent again: any other without an answer may be counted. */
export class KvClusterCall<Asked extends Pick<Hit, "key">, Answer extends Counted> implements Caller {
  readonly #options: KvClusterCallOptions;
  readonly #operation: KvOperation<Asked, Answer>;
  readonly #hits: readonly Asked[];
  readonly #caller: Caller | undefined;
  readonly #startedAt: number;
  readonly #counts: (Counted | undefined)[] = [];
  readonly #states: (string | undefined)[] = [];
  /** Time has passed, so that the timeout of a node would be too long. */
  #hasWaited = false;
  #isOver = false;

  constructor(options: KvClusterCallOptions, call: KvClusterQuestion<Asked, Answer>) {
    this.#options = options;
    this.#operation = call.operation;
    this.#hits = call.hits;
    this.#caller = call.caller;
    this.#startedAt = call.startedAt;
  }

  get cancelled(): boolean {
    return this.#isOver || this.#caller?.cancelled === true;
  }

  /** Resolves with the counts in the order of the hits; rejects with `KvFailure` when not all came. */
  async run(): Promise<Answer[]> {
    const { topology, waits } = this.#options;
    if (!topology.isKnown) {
      this.#hasWaited = true;
      await waits.within(topology.refresh.running ?? Promise.resolve(), this.#left());
    }
    if (topology.isKnown) await this.#askAll(this.#bySlot());
    else this.#hits.forEach((_, position) => this.#states[position] = topology.reason);
    return this.#finish();
  }

  /** Continues after a node was asked for all hits and did not answer every one. */
  async resume(node: KvClusterNode, failure: unknown): Promise<Answer[]> {
    const group = { node, asking: false, positions: this.#hits.map((_, position) => position) };
    await this.#sendOn(this.#fail(group, failure), 0);
    return this.#finish();
  }

  #finish(): Answer[] {
    const counts = this.#hits.map((_, position) => this.#counts[position]);
    const states = this.#hits.map((_, position) => this.#states[position]);
    const first = states.find((state) => state !== undefined);
    if (first !== undefined) throw new KvFailure(first, { counts, states });
    return counts as Answer[];
  }

  #bySlot(): Group[] {
    const { topology } = this.#options;
    const groups = new Map<KvClusterNode, Group>();
    this.#hits.forEach(({ key }, position) => {
      const slot = slotOf(key);
      const node = topology.nodeOf(slot);
      if (node !== undefined) return join(groups, { node, asking: false, position });
      this.#states[position] = `no node has slot ${slot}`;
      topology.refresh.suspect();
    });
    return [...groups.values()];
  }

  async #askAll(groups: readonly Group[]): Promise<void> {
    const { parallelism } = this.#options;
    if (parallelism === 0 || groups.length <= parallelism) {
      return void await Promise.all(groups.map((group) => this.#ask(group, 0)));
    }
    const queue = groups.values();
    const work = async () => {
      for (const group of queue) {
        await this.#ask(group, 0);
        this.#hasWaited = true;
      }
    };
    await Promise.all(Array.from({ length: parallelism }, work));
  }

  async #ask(group: Group, redirections: number): Promise<void> {
    const { node, positions } = group;
    const { waits } = this.#options;
    if (node.isOpening) {
      this.#hasWaited = true;
      await waits.within(node.opened, this.#left());
    }
    if (this.#hasWaited && (waits.isFull || this.#left() <= 0)) {
      return this.#failAll(group, waits.isFull ? "too many calls wait" : noAnswer(this.#options.timeoutMs));
    }
    const hits = positions.flatMap((position) => this.#hits[position] ?? []);
    let failure: unknown;
    const answer = node.ask(this.#operation, hits, { caller: this, asking: group.asking }, (error) => {
      failure = error;
      return [];
    });
    const counts = await (this.#hasWaited ? waits.within(answer, this.#left()) : answer);
    if (counts === undefined) {
      this.#isOver = true;
      return this.#failAll(group, noAnswer(this.#options.timeoutMs));
    }
    if (failure !== undefined) return await this.#sendOn(this.#fail(group, failure), redirections);
    positions.forEach((position, index) => this.#counts[position] = counts[index]);
  }

  async #sendOn(groups: readonly Group[], redirections: number): Promise<void> {
    if (groups.length === 0) return;
    const pauseMs = PAUSES_MS[redirections];
    if (pauseMs === undefined) {
      return groups.forEach((group) => this.#failAll(group, "the nodes send the hit to one another"));
    }
    this.#hasWaited = true;
    if (pauseMs > 0) {
      await this.#options.waits.within(new Promise<never>(() => {}), Math.min(pauseMs, this.#left()));
    }
    await Promise.all(groups.map((group) => this.#ask(group, redirections + 1)));
  }

  /** Notes what came of a group; returns the hits that were redirected. */
  #fail(group: Group, failure: unknown): Group[] {
    const redirected = new Map<KvClusterNode, Group>();
    const moving = new Map<KvClusterNode, Group>();
    group.positions.forEach((position, index) => {
      const state = stateOf(failure, index);
      if (typeof state !== "string") {
        this.#counts[position] = state;
        return;
      }
      const target = this.#target(group.node, state);
      if (target === undefined) this.#failOne(group.node, position, state);
      else join(target.asking ? moving : redirected, { ...target, position });
    });
    return [...redirected.values(), ...moving.values()];
  }

  #target(node: KvClusterNode, state: string): { node: KvClusterNode; asking: boolean } | undefined {
    const redirect = parseRedirect(state, node.endpoint);
    if (redirect === undefined) return undefined;
    const asking = redirect.kind === "ASK";
    const { topology } = this.#options;
    topology.tally[asking ? "asked" : "moved"]++;
    const target = topology.follow(redirect);
    return target === undefined ? undefined : { node: target, asking };
  }

  #failAll(group: Group, state: string): void {
    for (const position of group.positions) this.#failOne(group.node, position, state);
  }

  #failOne(node: KvClusterNode, position: number, state: string): void {
    this.#states[position] = node.describe(state);
    if (this.#caller?.cancelled === true || ERROR_REPLY.test(state) && !NODE_STATE.test(state)) return;
    node.failed();
    this.#options.topology.refresh.suspect();
  }

  #left(): number {
    const { clock, timeoutMs } = this.#options;
    return this.#startedAt + timeoutMs - clock.elapsed();
  }
}

function join(
  groups: Map<KvClusterNode, Group>,
  { node, asking, position }: { node: KvClusterNode; asking: boolean; position: number },
): void {
  const group = groups.get(node);
  if (group === undefined) groups.set(node, { node, asking, positions: [position] });
  else group.positions.push(position);
}

/** The count of a hit, or why there is none. */
function stateOf(failure: unknown, index: number): Counted | string {
  if (!(failure instanceof KvFailure)) return errorText(failure);
  return failure.counts[index] ?? failure.states[index] ?? failure.message;
}

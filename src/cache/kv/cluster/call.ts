import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { Caller, Hit } from "../../../ratelimit/counter_cache.ts";
import { KvFailure } from "../node.ts";
import type { KvClusterNode } from "./node.ts";
import { type KvTopology, nodeState } from "./topology.ts";
import type { KvClusterWaits } from "./waits.ts";
import { parseRedirect, slotOf } from "./slots.ts";

/**
 * Waits before a hit is sent on, by how often it was before: nodes that send it to one another have not
 * agreed yet on who has the slot, and need a moment. There are no further attempts.
 */
const PAUSES_MS = [0, 0, 20, 50, 100];
/** A node that answers so cannot serve now, unlike one that refuses a certain key. */
const NODE_STATE = /^(?:CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|TRYAGAIN)\b/;
/** An error that a node tells begins with a word in capitals. */
const TOLD_BY_NODE = /^[A-Z]{2,} /;

/** What calls have in common. */
export interface KvClusterCallOptions {
  readonly topology: KvTopology;
  readonly waits: KvClusterWaits;
  readonly timeoutMs: number;
  /** How many nodes a call asks at the same time; 0 for all. */
  readonly parallelism: number;
  readonly clock: Clock;
}

/** Hits that go to one node together, by their positions in the call. */
interface Group {
  readonly node: KvClusterNode;
  readonly asking: boolean;
  readonly positions: number[];
}

/**
 * One call on its way through the cluster. Only a hit that a node has refused by naming another one is
 * sent again: of any other hit without an answer nobody knows whether it was counted.
 */
export class KvClusterCall implements Caller {
  readonly #options: KvClusterCallOptions;
  readonly #hits: readonly Hit[];
  readonly #caller: Caller | undefined;
  readonly #startedAt: number;
  readonly #counts: (number | undefined)[] = [];
  readonly #states: (string | undefined)[] = [];
  /** Time has passed, so that the time-out of a node alone would be too long. */
  #waited = false;
  #over = false;

  constructor(
    options: KvClusterCallOptions,
    call: { readonly hits: readonly Hit[]; readonly caller: Caller | undefined; readonly startedAt: number },
  ) {
    this.#options = options;
    this.#hits = call.hits;
    this.#caller = call.caller;
    this.#startedAt = call.startedAt;
  }

  /** Its time is over, or nobody waits for it any more. */
  get gone(): boolean {
    return this.#over || this.#caller?.gone === true;
  }

  /** Answers the counts in the order of the hits; rejects with `KvFailure` when not all came. */
  async run(): Promise<number[]> {
    const { topology, waits } = this.#options;
    if (!topology.known) {
      this.#waited = true;
      if (topology.looking !== undefined) await waits.within(topology.looking, this.#left());
    }
    if (topology.known) await this.#askAll(this.#bySlot());
    else this.#hits.forEach((_, position) => this.#states[position] = topology.reason);
    return this.#finish();
  }

  /** Goes on after a node was asked for all hits and did not answer every one. */
  async resume(node: KvClusterNode, failure: unknown): Promise<number[]> {
    const group = { node, asking: false, positions: this.#hits.map((_, position) => position) };
    await this.#sendOn(this.#fail(group, failure), 0);
    return this.#finish();
  }

  #finish(): number[] {
    const first = this.#states.find((state) => state !== undefined);
    if (first === undefined) return this.#hits.map((_, position) => this.#counts[position] ?? 0);
    throw new KvFailure(first, {
      counts: this.#hits.map((_, position) => this.#counts[position]),
      states: this.#hits.map((_, position) => this.#states[position]),
    });
  }

  #bySlot(): Group[] {
    const { topology } = this.#options;
    const groups = new Map<KvClusterNode, Group>();
    this.#hits.forEach(({ key }, position) => {
      const slot = slotOf(key);
      const node = topology.nodeOf(slot);
      if (node !== undefined) return join(groups, { node, asking: false, position });
      this.#states[position] = `no node has slot ${slot}`;
      topology.suspect();
    });
    return [...groups.values()];
  }

  async #askAll(groups: readonly Group[]): Promise<void> {
    const { parallelism } = this.#options;
    if (parallelism === 0 || groups.length <= parallelism) {
      await Promise.all(groups.map((group) => this.#ask(group, 0)));
      return;
    }
    const queue = groups.values();
    const work = async () => {
      for (const group of queue) {
        await this.#ask(group, 0);
        this.#waited = true;
      }
    };
    await Promise.all(Array.from({ length: parallelism }, work));
  }

  /** Asks a node; hits that it sends on go where it says. */
  async #ask(group: Group, redirections: number): Promise<void> {
    const { node, positions } = group;
    const { waits } = this.#options;
    if (node.opening) {
      this.#waited = true;
      await waits.within(node.opened, this.#left());
    }
    if (this.#waited && (waits.full || this.#left() <= 0)) {
      return this.#failAll(group, waits.full ? "too many calls wait" : this.#timeout());
    }
    const hits = positions.flatMap((position) => this.#hits[position] ?? []);
    let failure: unknown;
    const answer = node.ask(hits, { caller: this, asking: group.asking }, (error) => {
      failure = error;
      return [];
    });
    const counts = await (this.#waited ? waits.within(answer, this.#left()) : answer);
    if (counts === undefined) {
      this.#over = true;
      return this.#failAll(group, this.#timeout());
    }
    if (failure !== undefined) return await this.#sendOn(this.#fail(group, failure), redirections);
    positions.forEach((position, index) => this.#counts[position] = counts[index]);
  }

  async #sendOn(groups: readonly Group[], redirections: number): Promise<void> {
    if (groups.length === 0) return;
    const pauseMs = PAUSES_MS[redirections];
    if (pauseMs === undefined) {
      for (const group of groups) this.#failAll(group, "the nodes send the hit to one another");
      return;
    }
    this.#waited = true;
    if (pauseMs > 0) await this.#options.waits.pause(Math.min(pauseMs, this.#left()));
    await Promise.all(groups.map((group) => this.#ask(group, redirections + 1)));
  }

  /** Takes what came of a group; answers the hits that are to be sent on. */
  #fail(group: Group, failure: unknown): Group[] {
    const redirected = new Map<KvClusterNode, Group>();
    const moving = new Map<KvClusterNode, Group>();
    group.positions.forEach((position, index) => {
      const state = stateOf(failure, index);
      if (typeof state === "number") {
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
    const { topology } = this.#options;
    const { slot, endpoint } = redirect;
    const asking = redirect.kind === "ASK";
    topology.tally[asking ? "asked" : "moved"]++;
    const target = asking ? topology.open(endpoint) : topology.move(slot, endpoint);
    return target === undefined ? undefined : { node: target, asking };
  }

  #failAll(group: Group, state: string): void {
    for (const position of group.positions) this.#failOne(group.node, position, state);
  }

  #failOne(node: KvClusterNode, position: number, state: string): void {
    this.#states[position] = nodeState(node, state);
    if (this.#caller?.gone === true || TOLD_BY_NODE.test(state) && !NODE_STATE.test(state)) return;
    node.failed();
    this.#options.topology.suspect();
  }

  /** At most the time-out, because the machine's clock may be set back. */
  #left(): number {
    const { clock, timeoutMs } = this.#options;
    return Math.min(timeoutMs, this.#startedAt + timeoutMs - clock.now());
  }

  #timeout(): string {
    return `no answer within ${this.#options.timeoutMs} ms`;
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

/** The count of a hit all the same, or what is said of it. */
function stateOf(failure: unknown, index: number): number | string {
  if (!(failure instanceof KvFailure)) return errorText(failure);
  return failure.counts[index] ?? failure.states[index] ?? failure.message;
}

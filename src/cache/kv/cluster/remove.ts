import { errorText } from "../../../base/error_text.ts";
import type { KvClusterCallOptions } from "./call.ts";
import type { KvClusterNode } from "./node.ts";
import { nodeState } from "./topology.ts";
import { parseRedirect, slotOf, type SlotRedirect } from "./slots.ts";

/** How many keys are removed at the same time. */
const PARALLEL_KEYS = 16;
const MAX_REDIRECTIONS = 5;
/** More than any counter holds: giving so much back leaves 0. */
const EVERYTHING = 2 ** 52;

/** Removes counters, each on the node that has it, within the time-out for all. Throws when one stays. */
export async function removeFromCluster(
  keys: readonly string[],
  options: KvClusterCallOptions,
): Promise<void> {
  const { topology, waits, timeoutMs, clock } = options;
  const startedAt = clock.now();
  const left = () => Math.min(timeoutMs, startedAt + timeoutMs - clock.now());
  if (!topology.known && topology.looking !== undefined) await waits.within(topology.looking, left());
  const queue = keys.values();
  const work = async () => {
    for (const key of queue) await removeKey(key, options, left);
  };
  const workers = await Promise.allSettled(Array.from({ length: PARALLEL_KEYS }, work));
  for (const worker of workers) {
    if (worker.status === "rejected") throw worker.reason;
  }
}

async function removeKey(key: string, options: KvClusterCallOptions, left: () => number): Promise<void> {
  const { topology } = options;
  const slot = slotOf(key);
  let node = topology.nodeOf(slot);
  for (let redirections = 0; node !== undefined && redirections <= MAX_REDIRECTIONS; redirections++) {
    const redirect: SlotRedirect | undefined = await removeOn(node, key, options, left);
    if (redirect === undefined) return;
    if (redirect.kind === "ASK") {
      const target = topology.open(redirect.endpoint);
      if (target === undefined) break;
      return await emptyOn(target, key, options, left);
    }
    node = topology.move(redirect.slot, redirect.endpoint);
  }
  throw new Error(topology.known ? `no node removes keys of slot ${slot}` : topology.reason);
}

/** Removes a key on one node; answers where else to try when that node does not have it. */
async function removeOn(
  node: KvClusterNode,
  key: string,
  { waits, timeoutMs, topology }: KvClusterCallOptions,
  left: () => number,
): Promise<SlotRedirect | undefined> {
  if (node.opening) await waits.within(node.opened, left());
  try {
    const done = await waits.within(node.command(["DEL", key]).then(() => true), left());
    if (done !== true) throw new Error(`no answer within ${timeoutMs} ms`);
    return undefined;
  } catch (error) {
    const state = errorText(error);
    const redirect = parseRedirect(state, node.endpoint);
    if (redirect !== undefined) return redirect;
    topology.suspect();
    throw new Error(nodeState(node, state), { cause: error });
  }
}

/**
 * Empties a counter whose slot is on its way to this node: the permission that this takes goes with hits
 * only, and a counter at 0 counts as one that does not exist.
 */
async function emptyOn(
  node: KvClusterNode,
  key: string,
  { waits, timeoutMs }: KvClusterCallOptions,
  left: () => number,
): Promise<void> {
  if (node.opening) await waits.within(node.opened, left());
  const hit = { key, addend: -EVERYTHING, windowEnd: 0, expiresInSeconds: 1, perSecond: false };
  let state: string | undefined;
  const answer = node.ask([hit], { asking: true }, (error) => {
    state = errorText(error);
    return [];
  });
  const counts = await waits.within(answer, left());
  if (counts === undefined) state = `no answer within ${timeoutMs} ms`;
  if (state !== undefined) throw new Error(nodeState(node, state));
}

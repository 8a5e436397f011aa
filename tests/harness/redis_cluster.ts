import { freePort } from "./free_port.ts";
import type { RedisReply } from "./redis_command.ts";
import { type RedisServer, startRedis } from "./redis_server.ts";
import { until } from "./until.ts";

const SLOTS = 16_384;
/** A machine may stand still for a while without the nodes taking each other for lost. */
const NODE_TIMEOUT_MS = "15000";
/** So long a key may take from one node to another. */
const MIGRATE_MS = 30_000;

/** Options of a redis cluster. */
interface RedisClusterOptions {
  /** Number of nodes that share the slots; 3 when absent. */
  readonly primaries?: number;
  /** Every primary gets a replica. */
  readonly replicas?: boolean;
  /** Further arguments of every redis-server. */
  readonly args?: readonly string[];
}

/** The place of a moving slot: promised to both nodes, with all its keys moved, known to the new node only. */
type MoveStep = "open" | "emptied" | "taken";

/** Starts a cluster of the test's own on the loopback address, and waits until all of it can be used. */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicas = false, args = [] } = options;
  const count = replicas ? primaries * 2 : primaries;
  const started = await Promise.allSettled(Array.from({ length: count }, () => startNode(args)));
  const nodes = started.flatMap((start) => start.status === "fulfilled" ? [start.value] : []);
  const cluster = new RedisCluster(nodes, primaries);
  try {
    for (const start of started) {
      if (start.status === "rejected") throw start.reason;
    }
    await cluster.join();
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/** One node, and the port on which the others talk to it. */
interface RedisClusterNode {
  readonly server: RedisServer;
  readonly busPort: number;
}

/** A running cluster; killed at the end of an `await using`. */
export class RedisCluster implements AsyncDisposable {
  /** All nodes: first those that began as primaries, then the replica of each in the same order. */
  readonly nodes: readonly RedisServer[];
  readonly #busPorts: readonly number[];
  readonly #primaries: number;

  constructor(nodes: readonly RedisClusterNode[], primaries: number) {
    this.nodes = nodes.map(({ server }) => server);
    this.#busPorts = nodes.map(({ busPort }) => busPort);
    this.#primaries = primaries;
  }

  /** Comma list of the nodes that began as primaries, as `KV_URL` takes it. */
  get url(): string {
    return this.nodes.slice(0, this.#primaries).map(({ url }) => url).join(",");
  }

  /** The node at a position. */
  node(index: number): RedisServer {
    const node = this.nodes[index];
    if (node === undefined) throw new RangeError(`Cannot use node ${index}: there are ${this.nodes.length}`);
    return node;
  }

  /** Makes one cluster of nodes that know nothing of each other, with the same number of slots for each. */
  async join(): Promise<void> {
    for (const [index, node] of this.nodes.entries()) {
      await node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
      if (index >= this.#primaries) continue;
      const [from, end] = [index, index + 1].map((part) => Math.ceil((part * SLOTS) / this.#primaries));
      await node.command("CLUSTER", "ADDSLOTSRANGE", from ?? 0, (end ?? SLOTS) - 1);
    }
    for (const [index, { port }] of this.nodes.entries()) {
      if (index > 0) {
        await this.node(0).command("CLUSTER", "MEET", "127.0.0.1", port, this.#busPorts[index] ?? 0);
      }
    }
    await this.#all(
      "to know each other",
      (state) => state.includes(`cluster_known_nodes:${this.nodes.length}\r\n`),
    );
    for (let index = this.#primaries; index < this.nodes.length; index++) {
      const primary = await this.idOf(index - this.#primaries);
      await this.node(index).command("CLUSTER", "REPLICATE", primary);
    }
    for (const replica of this.nodes.slice(this.#primaries)) {
      await until("a replica to follow its primary", async () => {
        return String(await replica.command("INFO", "replication")).includes("master_link_status:up");
      });
    }
    await this.settled();
  }

  /** Waits until every node says that the cluster can be used, and all say the same of it. */
  async settled(): Promise<void> {
    await this.#all("to be usable", (state) => state.includes("cluster_state:ok"));
    await until("every node of the cluster to see the same", async () => {
      const views = await Promise.all(this.nodes.map((node) => viewOf(node)));
      const replicas = views[0]?.filter((line) => line.includes("slave")).length;
      return new Set(views.map((view) => view.join("\n"))).size === 1 &&
        replicas === this.nodes.length - this.#primaries;
    });
  }

  /** The name that a node has in the cluster. */
  async idOf(index: number): Promise<string> {
    return String(await this.node(index).command("CLUSTER", "MYID"));
  }

  /** The position of the primary that has a slot, as the node at `asked` knows it. */
  async ownerOf(slot: number, asked = 0): Promise<number> {
    const lines = String(await this.node(asked).command("CLUSTER", "NODES")).split("\n");
    const line = lines.find((text) => text.split(" ").slice(8).some((range) => covers(range, slot))) ?? "";
    const port = Number(/:(\d+)@/.exec(line)?.[1]);
    return this.nodes.findIndex((node) => node.port === port);
  }

  /** Gives a slot with its keys to another primary, as a resharding does; `hook` runs between the steps. */
  async moveSlot(
    slot: number,
    toIndex: number,
    hook: (step: MoveStep) => void | Promise<void> = () => {},
  ): Promise<void> {
    const fromIndex = await this.ownerOf(slot, toIndex);
    if (fromIndex === toIndex) return;
    const [from, to] = [this.node(fromIndex), this.node(toIndex)];
    const toId = await this.idOf(toIndex);
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", await this.idOf(fromIndex));
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
    await hook("open");
    for (let keys = await keysOf(from, slot); keys.length > 0; keys = await keysOf(from, slot)) {
      for (const key of keys) await this.moveKey(key, fromIndex, toIndex);
    }
    await hook("emptied");
    await to.command("CLUSTER", "SETSLOT", slot, "NODE", toId);
    await hook("taken");
    for (const node of [from, ...this.nodes.slice(0, this.#primaries)]) {
      await node.command("CLUSTER", "SETSLOT", slot, "NODE", toId);
    }
  }

  /** Moves one key between nodes. */
  async moveKey(key: string, fromIndex: number, toIndex: number): Promise<void> {
    await this.node(fromIndex).command("MIGRATE", "127.0.0.1", this.node(toIndex).port, key, 0, MIGRATE_MS);
  }

  /** Ends the node at a position without asking it. */
  async killPrimary(index: number): Promise<void> {
    await this.node(index).kill();
  }

  /** Puts the replica of a primary in its place immediately: it would be long until the others missed it. */
  async takeOver(index: number): Promise<void> {
    await this.node(index + this.#primaries).command("CLUSTER", "FAILOVER", "TAKEOVER");
  }

  /** The sum of a counter over all nodes that run and admit to have its slot. */
  async sumOf(key: string): Promise<number> {
    const values = await Promise.all(this.nodes.map((node) => node.command("GET", key).catch(() => null)));
    return values.reduce((sum: number, value: RedisReply) => sum + Number(value ?? 0), 0);
  }

  /** Kills all nodes and removes their folders. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
  }

  async #all(what: string, holds: (state: string) => boolean): Promise<void> {
    await Promise.all(this.nodes.map((node) => {
      return until(`every node of the cluster ${what}`, async () => {
        return holds(String(await node.command("CLUSTER", "INFO")));
      });
    }));
  }
}

async function startNode(args: readonly string[]): Promise<RedisClusterNode> {
  // Its default is a port that is higher by 10,000, which may be taken or not exist.
  const busPort = freePort();
  const cluster = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
  // A cluster outlives the test that would be blamed for a line that is read during it.
  const silence = ["--logfile", "/dev/null"];
  const ports = ["--cluster-port", String(busPort), "--cluster-node-timeout", NODE_TIMEOUT_MS];
  // A primary that is lost without a successor takes only its own slots along.
  const coverage = ["--cluster-require-full-coverage", "no"];
  // A primary would wait some seconds for more replicas before it sends what it holds.
  const copies = ["--repl-diskless-sync-delay", "0"];
  return {
    server: await startRedis({ args: [...cluster, ...silence, ...ports, ...coverage, ...copies, ...args] }),
    busPort,
  };
}

/** A node's view of all nodes: name, part, primary, age of its slots, and the slots. */
async function viewOf(node: RedisServer): Promise<string[]> {
  const lines = String(await node.command("CLUSTER", "NODES")).trimEnd().split("\n");
  return lines.map((line) => {
    const [id, , flags = "", primary, , , epoch, , ...slots] = line.split(" ");
    return [
      id,
      flags.replace("myself,", ""),
      primary,
      epoch,
      ...slots.filter((slot) => !slot.startsWith("[")),
    ].join(" ");
  }).sort();
}

async function keysOf(node: RedisServer, slot: number): Promise<string[]> {
  const keys = String(await node.command("CLUSTER", "GETKEYSINSLOT", slot, 100));
  return keys === "" ? [] : keys.split("\n");
}

function covers(range: string, slot: number): boolean {
  const [from, to = from] = range.split("-").map(Number);
  return from !== undefined && to !== undefined && slot >= from && slot <= to;
}

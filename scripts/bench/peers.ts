import { ChildProcess } from "../../tests/harness/child_process.ts";
import { RULES } from "../../tests/harness/bench_rules.ts";
import { freePort } from "../../tests/harness/free_port.ts";
import { isExecutable } from "../../tests/harness/tools.ts";
import { makeWeirFolder } from "../../tests/harness/weir_folder.ts";
import { runtimeEnvironment } from "../../tests/harness/weir_command.ts";
import { dialAddress } from "../../src/settings/address_parsers.ts";
import { resolve } from "node:path";

/** The program of envoyproxy/ratelimit, which the bench starts. */
interface OriginalPeer {
  readonly name: "original";
  readonly path: string;
}

/** A rate limit service that runs already, with the rules of the bench. */
interface RunningPeer {
  /** Differs from the names of all other targets. */
  readonly name: `peer:${string}`;
  readonly host: string;
  readonly port: number;
  /** Its process, if it is on this machine and known. */
  readonly pid?: number;
}

/** Another rate limit service that Weir is compared with. */
export type Peer = OriginalPeer | RunningPeer;
/** The name of a peer as a target. */
export type PeerName = Peer["name"];

/** The flags that choose peers. */
interface PeerFlags {
  readonly peers: boolean;
  readonly original?: string | undefined;
  readonly peer: readonly string[];
}

const PEER = /^([A-Za-z0-9][A-Za-z0-9._-]{0,39})=([^,]+)(?:,([1-9]\d{0,9}))?$/;
const LISTENING = /Listening for gRPC on '[^']*:(\d+)'/;

/** The chosen peers, or undefined without `--peers`; throws `RangeError` that says what is expected. */
export function readPeers({ peers, original, peer }: PeerFlags): readonly Peer[] | undefined {
  if (!peers) {
    if (original !== undefined) throw new RangeError("Cannot use --original: it requires --peers");
    if (peer.length > 0) throw new RangeError("Cannot use --peer: it requires --peers");
    return undefined;
  }
  const servers = peer.map(readPeer);
  const names = servers.map(({ name }) => name);
  const repeated = peer.find((_, index) => names.indexOf(names[index] ?? "peer:") < index);
  if (repeated !== undefined) {
    throw new RangeError(`Invalid --peer "${repeated}": another peer has this name`);
  }
  return [...(original === undefined ? [] : [readOriginal(original)]), ...servers];
}

function readOriginal(path: string): OriginalPeer {
  // A name without a folder would be searched in PATH.
  if (isExecutable(path)) return { name: "original", path: resolve(path) };
  throw new RangeError(`Invalid --original "${path}": expected the path of a program`);
}

function readPeer(text: string): RunningPeer {
  const [, name = "", addressText = "", pidText] = PEER.exec(text) ?? [];
  const address = dialAddress(addressText);
  if (name === "" || !("value" in address)) {
    throw new RangeError(
      `Invalid --peer "${text}": expected NAME=HOST:PORT or NAME=HOST:PORT,PID, with letters, digits, ".", "_" and "-" in NAME`,
    );
  }
  const pid = pidText === undefined ? {} : { pid: Number(pidText) };
  return { name: `peer:${name}`, ...address.value, ...pid };
}

/** Starts the original with the rules of the bench and this redis-server; returns its process and gRPC port. */
export async function startOriginal(
  { path }: OriginalPeer,
  redisPort: number,
  owned: AsyncDisposableStack,
): Promise<{ readonly pid: number; readonly port: number }> {
  const folder = await makeWeirFolder({ "bench.yaml": RULES });
  owned.defer(() => Deno.remove(folder.path, { recursive: true }));
  const env = {
    ...runtimeEnvironment(),
    ...folder.env,
    PORT: `${freePort()}`,
    GRPC_PORT: `${freePort()}`,
    DEBUG_PORT: `${freePort()}`,
    BACKEND_TYPE: "redis",
    REDIS_SOCKET_TYPE: "tcp",
    REDIS_URL: `127.0.0.1:${redisPort}`,
    USE_STATSD: "false",
    LOG_LEVEL: "warn",
  };
  try {
    const child = owned.use(new ChildProcess(path, { args: [], env }));
    const { port } = await child.find({ port: LISTENING });
    return { pid: child.pid, port: Number(port) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`Cannot start the original "${path}": ${message}`);
  }
}

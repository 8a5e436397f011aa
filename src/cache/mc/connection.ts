import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { HostAndPort } from "../../base/host_port.ts";
import { type ServerChecks, UnreportedState, untilStateIsKnown } from "../server_checks.ts";
import { type Greeted, openServerConnection, ServerConnection } from "../server_connection.ts";
import type { TlsFiles } from "../tls_files.ts";
import { McReplyReader } from "./reply_reader.ts";

/** Options of the connections to one node. */
export interface McConnectionOptions {
  readonly address: HostAndPort;
  readonly tls?: TlsFiles | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Shared by the connections to one node. */
  readonly checks: ServerChecks;
}

/** A server that does not know a command, such as a proxy; with another text it refuses the connection. */
const UNKNOWN_COMMAND = /^(?:ERROR$|CLIENT_ERROR\b)/;
/** No counter has this key: every counter ends with the start of its window. */
const PROBE = "get weir:connection_check\r\n";
/** A proxy reports a node behind it that does not answer as a server error. */
const PROBE_REPLY = /^(?:END$|VALUE |SERVER_ERROR )/;

/** A connection to a node of the memcached protocol. */
export class McConnection extends ServerConnection<string> {
  constructor(stream: Duplex, lost: (reason: string) => void) {
    const reader = new McReplyReader();
    super(stream, lost, (bytes, onReply) => {
      for (const reply of reader.read(bytes)) onReply(reply);
    });
  }

  /** Sends one command with one reply. */
  command(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.send(text, 1, ([reply = ""]) => {
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }
}

/** Opens a connection to a node that answers. Rejects with the reason; `lost` is called once when it ends after that. */
export function openMcConnection(
  { address, tls, timeoutMs, clock, checks }: McConnectionOptions,
  lost: (reason: string) => void,
  signal: AbortSignal,
): Promise<McConnection> {
  const options = { target: address, tls, timeoutMs, clock, signal };
  return untilStateIsKnown(() =>
    openServerConnection(options, {
      create: (stream, ended) => new McConnection(stream, ended),
      greet: (greeted) => greet(greeted, checks),
    }, lost)
  );
}

/** A server that does not answer the greeting, such as a proxy, is checked by a command that counting requires. */
async function greet(greeted: Greeted<McConnection>, checks: ServerChecks): Promise<void> {
  const { connection, address } = greeted;
  const unknown = checks.skipped(address) ?? await askVersion(greeted, checks);
  if (unknown === undefined) return;
  const reply = await connection.command(PROBE).catch((error: unknown) => {
    checks.ask(address);
    throw error;
  });
  if (!PROBE_REPLY.test(reply)) throw refusedWith(reply);
  checks.passed(address, unknown);
}

/** Returns the answer of a server that does not know the command; nothing where it does. */
async function askVersion(
  greeted: Greeted<McConnection>,
  checks: ServerChecks,
): Promise<string | undefined> {
  const { connection, address } = greeted;
  const reply = await connection.command("version\r\n").catch((error: unknown) => {
    if (greeted.isOver || connection.isUnreadable) throw error;
    checks.skip(address, `version: ${errorText(error)}`);
    throw new UnreportedState(errorText(error));
  });
  if (UNKNOWN_COMMAND.test(reply)) return `version: ${reply}`;
  if (!reply.startsWith("VERSION ")) throw refusedWith(reply);
  checks.answered(address);
  return undefined;
}

function refusedWith(reply: string): Error {
  return new Error(`it greets with ${JSON.stringify(reply)}`);
}

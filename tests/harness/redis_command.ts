import { Buffer } from "node:buffer";
import { ReplyError, respArgument, respCommand, RespReader } from "../../src/cache/kv/resp.ts";

/** One command: its name and arguments. */
export type RedisCommand = readonly (string | Uint8Array<ArrayBuffer>)[];

/** The reply of a command; lists come with a line for each element. */
export type RedisReply = string | number | null;

/** Options of a redis command. */
interface RedisCommandOptions {
  readonly port: number;
  readonly password?: string | undefined;
  /** Number of the database; 0 when absent. */
  readonly database?: number;
}

/** After this a command has failed. */
const TIMEOUT_MS = 30_000;

/** Sends one command to 127.0.0.1 over its own connection. Throws what the server calls an error. */
export async function redisCommand(
  args: readonly string[],
  options: RedisCommandOptions,
): Promise<RedisReply> {
  const [reply = null] = await redisCommands([args], options);
  return reply;
}

/** The same with many commands that are written all at the same time, their replies in order. */
export async function redisCommands(
  commands: readonly RedisCommand[],
  options: RedisCommandOptions,
): Promise<RedisReply[]> {
  return (await redisReplies(commands, options)).map(plainReply);
}

/** The same as they come: lists as lists, and errors as `ReplyError`. */
export async function redisReplies(
  commands: readonly RedisCommand[],
  { port, password, database }: RedisCommandOptions,
): Promise<unknown[]> {
  const first: RedisCommand[] = [
    ...password === undefined ? [] : [["AUTH", password]],
    ...database === undefined ? [] : [["SELECT", String(database)]],
  ];
  const all = [...first, ...commands];
  const data = all.map(([name = "", ...args]) => respCommand(String(name), ...args.map(respArgument)));
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let isOpen = true;
  const close = () => {
    if (isOpen) connection.close();
    isOpen = false;
  };
  const timer = setTimeout(close, TIMEOUT_MS);
  try {
    // The server may not read on before its replies are read.
    const [replies] = await Promise.all([
      readReplies(connection, all.length),
      writeAll(connection, Buffer.concat(data)),
    ]);
    // A refused login or database is an error.
    replies.splice(0, first.length).forEach(plainReply);
    return replies;
  } finally {
    clearTimeout(timer);
    close();
  }
}

async function readReplies(connection: Deno.Conn, count: number): Promise<unknown[]> {
  const replies: unknown[] = [];
  const reader = new RespReader();
  while (replies.length < count) {
    const chunk = Buffer.alloc(16_384);
    const read = await connection.read(chunk);
    if (read === null) throw new Error("Cannot read a reply: the server closed the connection");
    reader.read(chunk.subarray(0, read), (reply) => void replies.push(reply));
  }
  return replies;
}

function plainReply(reply: unknown): RedisReply {
  if (reply instanceof ReplyError) throw new Error(`Cannot run the command: ${reply.message}`);
  if (Array.isArray(reply)) return reply.map(plainReply).join("\n");
  return typeof reply === "number" || reply === null ? reply : String(reply);
}

/** Writes all of it, however little the connection takes in one write. */
export async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

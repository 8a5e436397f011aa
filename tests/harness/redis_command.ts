import { joinBytes } from "../../src/base/bytes.ts";

/** One command: its name and arguments. */
export type RedisCommand = readonly (string | Uint8Array<ArrayBuffer>)[];

/** What a command answered; lists come with a line for each element. */
export type RedisReply = string | number | null;

/** Where to send a command. */
export interface RedisCommandOptions {
  readonly port: number;
  readonly password?: string | undefined;
  /** Number of the database; 0 when absent. */
  readonly database?: number;
  /** After this the command has failed; 30 seconds when absent. */
  readonly timeoutMs?: number;
}

/** Sends one command to 127.0.0.1 over a connection of its own. Throws what the server calls an error. */
export async function redisCommand(
  args: readonly string[],
  options: RedisCommandOptions,
): Promise<RedisReply> {
  const [reply = null] = await redisCommands([args], options);
  return reply;
}

/** The same with many commands that are written all at once, their replies in order. */
export async function redisCommands(
  commands: readonly RedisCommand[],
  options: RedisCommandOptions,
): Promise<RedisReply[]> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: options.port });
  let open = true;
  const close = () => {
    if (open) connection.close();
    open = false;
  };
  const timer = setTimeout(close, options.timeoutMs ?? 30_000);
  try {
    const replies = new ReplyReader(connection);
    const { password, database } = options;
    const first: RedisCommand[] = [
      ...password === undefined ? [] : [["AUTH", password]],
      ...database === undefined ? [] : [["SELECT", String(database)]],
    ];
    const all = [...first, ...commands];
    // The server may not read on before its replies are read.
    const [found] = await Promise.all([
      replies.readAll(all.length),
      writeAll(connection, commandBytes(all)),
    ]);
    return found.slice(first.length);
  } finally {
    clearTimeout(timer);
    close();
  }
}

/** Commands as the server reads them: lists of strings, each with its length in bytes. */
function commandBytes(commands: readonly RedisCommand[]): Uint8Array {
  const encoder = new TextEncoder();
  const parts = commands.flatMap((args) => [
    encoder.encode(`*${args.length}\r\n`),
    ...args.flatMap((arg) => {
      const bytes = typeof arg === "string" ? encoder.encode(arg) : arg;
      return [encoder.encode(`$${bytes.length}\r\n`), bytes, encoder.encode("\r\n")];
    }),
  ]);
  return joinBytes(parts);
}

/** Writes all of it, however little the connection takes at once. */
export async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

/** Reads replies, one after the other; text is taken as one byte a character until it is whole. */
class ReplyReader {
  readonly #connection: Deno.Conn;
  #waiting = "";

  constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  async readAll(count: number): Promise<RedisReply[]> {
    const replies: RedisReply[] = [];
    while (replies.length < count) replies.push(await this.read());
    return replies;
  }

  async read(): Promise<RedisReply> {
    const line = await this.#line();
    const rest = line.slice(1);
    switch (line[0]) {
      case "+":
        return rest;
      case "-":
        throw new Error(`Cannot run the command: ${rest}`);
      case ":":
        return Number(rest);
      case "$":
        return Number(rest) < 0 ? null : await this.#text(Number(rest));
      case "*":
        return Number(rest) < 0 ? null : await this.#list(Number(rest));
      default:
        throw new Error(`Cannot read the reply "${line}": its type is not known`);
    }
  }

  async #list(length: number): Promise<string> {
    const elements: RedisReply[] = [];
    while (elements.length < length) elements.push(await this.read());
    return elements.join("\n");
  }

  async #line(): Promise<string> {
    while (!this.#waiting.includes("\r\n")) await this.#more();
    const end = this.#waiting.indexOf("\r\n");
    return this.#take(end).slice(0, end);
  }

  async #text(length: number): Promise<string> {
    while (this.#waiting.length < length + 2) await this.#more();
    const bytes = Uint8Array.from(this.#take(length), (character) => character.charCodeAt(0));
    return new TextDecoder().decode(bytes);
  }

  /** Takes so many characters and the line break behind them. */
  #take(length: number): string {
    const taken = this.#waiting.slice(0, length);
    this.#waiting = this.#waiting.slice(length + 2);
    return taken;
  }

  async #more(): Promise<void> {
    const buffer = new Uint8Array(16_384);
    const read = await this.#connection.read(buffer);
    if (read === null) throw new Error("Cannot read a reply: the server closed the connection");
    this.#waiting += String.fromCharCode(...buffer.subarray(0, read));
  }
}

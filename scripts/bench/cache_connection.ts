/** What redis-server answers, as far as the bench asks. */
export type Reply = string | number | null | Reply[];

/** How long a server may take for one answer. */
const ANSWER_MS = 10_000;
/** What the reader of one protocol found: one reply and where it ends; nothing while it is not whole. */
type Parse<R> = (text: string, start: number) => { reply: R; end: number } | undefined;

/** A plain connection to a cache server, by which the bench sets it up and counts after it. */
export class CacheConnection implements Disposable {
  readonly #connection: Deno.Conn;
  readonly #address: string;

  constructor(connection: Deno.Conn, address: string) {
    this.#connection = connection;
    this.#address = address;
  }

  /** Connects to a server on a port of the loopback. */
  static async open(port: number): Promise<CacheConnection> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    return new CacheConnection(connection, `127.0.0.1:${port}`);
  }

  /** What redis-server answers to this command; throws when that is an error. */
  async ask(...command: readonly (string | number)[]): Promise<Reply> {
    const [reply = null] = await this.askAll([command]);
    return reply;
  }

  /** The same for many commands that are written all at once, their replies in order. */
  async askAll(commands: readonly (readonly (string | number)[])[]): Promise<Reply[]> {
    const text = commands.map((parts) => {
      return `*${parts.length}\r\n${parts.map((part) => `$${`${part}`.length}\r\n${part}\r\n`).join("")}`;
    });
    return await this.exchange(text.join(""), commands.length, parseReply);
  }

  /** Writes a text, one character an octet, and reads so many replies to it. */
  async exchange<R>(text: string, replies: number, parse: Parse<R>): Promise<R[]> {
    const timer = setTimeout(() => this.#connection.close(), ANSWER_MS);
    try {
      // The server may not read on before its answers are read.
      const [, read] = await Promise.all([this.#write(text), this.#read(replies, parse)]);
      return read;
    } catch (error) {
      throw new Error(`Cannot ask cache server "${this.#address}": ${messageOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    try {
      this.#connection.close();
    } catch {
      // It was closed because an answer took too long.
    }
  }

  async #write(text: string): Promise<void> {
    const octets = Uint8Array.from(text, (char) => char.charCodeAt(0));
    for (let at = 0; at < octets.length;) at += await this.#connection.write(octets.subarray(at));
  }

  async #read<R>(replies: number, parse: Parse<R>): Promise<R[]> {
    const chunk = new Uint8Array(65_536);
    const found: R[] = [];
    let rest = "";
    while (found.length < replies) {
      const size = await this.#connection.read(chunk);
      if (size === null) throw new Error("it closed the connection");
      for (const octet of chunk.subarray(0, size)) rest += String.fromCharCode(octet);
      let at = 0;
      while (found.length < replies) {
        const parsed = parse(rest, at);
        if (parsed === undefined) break;
        found.push(parsed.reply);
        at = parsed.end;
      }
      rest = rest.slice(at);
    }
    return found;
  }
}

/** The reply that begins at `start` and where it ends; nothing while it is not whole. */
function parseReply(text: string, start: number): { reply: Reply; end: number } | undefined {
  const lineEnd = text.indexOf("\r\n", start);
  if (lineEnd < 0) return undefined;
  const line = text.slice(start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (text[start]) {
    case "+":
      return { reply: line, end };
    case ":":
      return { reply: Number(line), end };
    case "$": {
      const length = Number(line);
      if (length < 0) return { reply: null, end };
      if (text.length < end + length + 2) return undefined;
      return { reply: text.slice(end, end + length), end: end + length + 2 };
    }
    case "*":
      return parseList(text, end, Number(line));
    default:
      throw new Error(`it answered "${text.slice(start, lineEnd)}"`);
  }
}

function parseList(text: string, start: number, length: number): { reply: Reply[]; end: number } | undefined {
  const reply: Reply[] = [];
  let end = start;
  for (let index = 0; index < length; index++) {
    const item = parseReply(text, end);
    if (item === undefined) return undefined;
    reply.push(item.reply);
    end = item.end;
  }
  return { reply, end };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What redis-server answers, as far as the bench asks. */
type Reply = string | number | null | Reply[];

/** Keys that one MGET asks for. */
const BATCH = 1_000;

/** The sum of all counters in the redis-server on this port: SCAN for the keys, MGET for the counts. */
export async function sumOfCounters(port: number): Promise<number> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  // SCAN may name a key more than once.
  const keys = new Set<string>();
  let cursor = "0";
  do {
    const reply = await ask(connection, ["SCAN", cursor, "COUNT", `${BATCH}`]);
    if (!Array.isArray(reply) || !Array.isArray(reply[1])) throw unexpected(reply);
    for (const key of reply[1]) keys.add(String(key));
    cursor = String(reply[0]);
  } while (cursor !== "0");
  const all = [...keys];
  let sum = 0;
  for (let at = 0; at < all.length; at += BATCH) {
    const counts = await ask(connection, ["MGET", ...all.slice(at, at + BATCH)]);
    if (!Array.isArray(counts)) throw unexpected(counts);
    for (const count of counts) {
      if (typeof count !== "string") throw unexpected(count);
      sum += Number(count);
    }
  }
  return sum;
}

async function ask(connection: Deno.Conn, command: readonly string[]): Promise<Reply> {
  const text = command.map((part) => `$${part.length}\r\n${part}\r\n`).join("");
  // One character an octet, both ways, so that keys come back as they were.
  await write(connection, Uint8Array.from(`*${command.length}\r\n${text}`, (char) => char.charCodeAt(0)));
  const chunk = new Uint8Array(65_536);
  let received = "";
  for (;;) {
    const size = await connection.read(chunk);
    if (size === null) throw new Error(`Cannot ask redis-server "${command[0]}": it closed the connection`);
    for (const octet of chunk.subarray(0, size)) received += String.fromCharCode(octet);
    const parsed = parse(received, 0);
    if (parsed !== undefined) return parsed.reply;
  }
}

async function write(connection: Deno.Conn, octets: Uint8Array): Promise<void> {
  for (let at = 0; at < octets.length;) at += await connection.write(octets.subarray(at));
}

/** The reply that begins at `start` and where it ends; nothing while it is not whole. */
function parse(text: string, start: number): { reply: Reply; end: number } | undefined {
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
      throw unexpected(line);
  }
}

function parseList(text: string, start: number, length: number): { reply: Reply[]; end: number } | undefined {
  const reply: Reply[] = [];
  let end = start;
  for (let index = 0; index < length; index++) {
    const item = parse(text, end);
    if (item === undefined) return undefined;
    reply.push(item.reply);
    end = item.end;
  }
  return { reply, end };
}

function unexpected(reply: Reply): Error {
  return new Error(
    `Cannot use reply of redis-server "${JSON.stringify(reply)}": it is not what the command answers`,
  );
}

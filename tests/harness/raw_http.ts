/** A response over a raw connection. */
export interface RawAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends one request whose header lines are written as they are, such as `["X-A: 1", "X-A: 2"]`. */
export async function sendRaw(
  address: string,
  requestLine: string,
  lines: readonly string[],
  body: string | Uint8Array = "",
): Promise<RawAnswer> {
  const [hostname = "", port = ""] = address.split(":");
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const head = [
    `${requestLine} HTTP/1.1`,
    ...[`Host: ${address}`, "Connection: close", `Content-Length: ${bytes.length}`],
    ...lines,
  ];
  const sent = new Blob([`${head.join("\r\n")}\r\n\r\n`, new Uint8Array(bytes)]);
  // The answer to a refused request may come before its end was read.
  const written = sent.stream().pipeTo(connection.writable, { preventClose: true }).catch(() => {});
  const text = await new Response(connection.readable).text();
  await written;
  const [start = "", ...rest] = text.split("\r\n\r\n");
  const [statusLine = "", ...fields] = start.split("\r\n");
  return {
    status: Number(statusLine.split(" ")[1]),
    headers: new Map(fields.map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
    })),
    body: rest.join("\r\n\r\n"),
  };
}

import { Buffer } from "node:buffer";
import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { CommandError } from "./command_input.ts";
import { plainText, shortened } from "./plain_text.ts";

/** Where to ask for health. */
export interface HealthPage {
  readonly url: URL;
  /** Certificates that are trusted; without them the usual ones are, and for a service of our own any. */
  readonly ca: string | undefined;
  /** It is that of this environment, on this machine. */
  readonly isOwn: boolean;
}

/** What a service said of itself. */
export interface HealthAnswer {
  readonly isHealthy: boolean;
  /** One line. */
  readonly text: string;
}

const MAX_BYTES = 64 * 1_024;
const MAX_SHOWN = 2_000;

/**
 * Asks for health by HTTP. It is `node:http` that asks, which no proxy of the environment comes between. Throws a
 * `CommandError` of one line when there is no whole answer in time.
 */
export async function askHealthPage(
  page: HealthPage,
  { timeoutMs, clock }: { readonly timeoutMs: number; readonly clock: Clock },
): Promise<HealthAnswer> {
  const overdue = new AbortController();
  const cancel = clock.after(timeoutMs, () => overdue.abort());
  try {
    const response = await asked(page, overdue.signal);
    return answerOf(response.statusCode ?? 0, await bodyOf(response));
  } catch (error) {
    const reason = overdue.signal.aborted ? `no whole answer within ${timeoutMs} ms` : errorText(error);
    throw new CommandError(`Cannot ask "${page.url.href}": ${plainText(reason)}`, { cause: error });
  } finally {
    cancel();
    // Lets go of the connection, whatever is still to come.
    overdue.abort();
  }
}

function asked({ url, ca, isOwn }: HealthPage, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { agent: false, signal, headers: { accept: "text/plain" } } as const;
    const tls = ca === undefined ? { rejectUnauthorized: !isOwn } : { ca };
    const request = url.protocol === "https:"
      ? requestTls(url, { ...options, ...tls }, resolve)
      : requestPlain(url, options, resolve);
    request.on("error", reject);
    request.end();
  });
}

async function bodyOf(response: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response) {
    length += part.byteLength;
    if (length > MAX_BYTES) throw new Error(`its answer is longer than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function answerOf(status: number, body: string): HealthAnswer {
  const lines = body.split("\n").map((line) => plainText(line.trim())).filter((line) => line !== "");
  const text = shortened(lines.join("; "), MAX_SHOWN);
  if (status === 200) return { isHealthy: true, text };
  return { isHealthy: false, text: text === "" ? `${status}` : `${status}: ${text}` };
}

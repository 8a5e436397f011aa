import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { collectBytes, strictText } from "../base/bytes.ts";
import { errorText } from "../base/error_text.ts";
import { aborted } from "../base/wait.ts";
import { integer } from "../settings/parsers.ts";
import { verify } from "../webhooks/receiver.ts";
import { timeText } from "../base/rfc3339.ts";
import { CommandError, type CommandOptions, type GivenCommand, type RunnableCommand } from "./command.ts";
import { FlagError } from "./flags.ts";
import { Interruption } from "./interruption.ts";
import { OUTPUT_FLAGS, printerOf, type ValuePrinter } from "./output_format.ts";
import { plainText, shortened } from "./plain_text.ts";
import { type Checking, checkingOf, SECRET_FLAGS } from "./webhooks_verify.ts";

/** `weir webhooks listen`. */
export const LISTEN_COMMAND: RunnableCommand = {
  command: {
    words: "webhooks listen",
    args: [],
    doc: "receive, print and verify deliveries on this machine until interrupted",
    flags: {
      port: { value: "N", doc: "port on 127.0.0.1 (default 9000; 0 picks a free port)" },
      ...SECRET_FLAGS,
      fail: {
        value: "HOW[:N]",
        doc:
          "fail the next N deliveries (default: all) with a status from 300 to 599, timeout (no response) or reset",
        repeated: true,
      },
      ...OUTPUT_FLAGS,
    },
    notes:
      "It responds with 200 to all other deliveries. Add 127.0.0.0/8 to WEBHOOK_ALLOW_CIDRS of the service\n" +
      "to allow deliveries to this machine.",
  },
  run: listen,
};

const HOST = "127.0.0.1";
const DEFAULT_PORT = 9_000;
const MAX_BODY_BYTES = 16 * 1_024 * 1_024;
const MAX_SHOWN = 400;
/** Most deliveries that are remembered to recognize a repetition. */
const MAX_SEEN = 10_000;
const HOW = /^(?:(timeout|reset)|([3-5]\d\d))(?::([1-9]\d{0,8}))?$/;

/** The treatment of a delivery other than 200. */
interface Failure {
  readonly how: number | "timeout" | "reset";
  readonly times: number;
}

/** Runs `weir webhooks listen` until it is interrupted. */
async function listen({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const printer = printerOf(flags, options.output);
  const port = flags.value("port", integer({ min: 0, max: 65_535 })) ?? DEFAULT_PORT;
  const failures = flags.texts("fail").map(failureOf);
  const receiver = new Receiver(await checkingOf(flags, options), failures, { ...options, printer });
  const server = createServer((request, response) => void receiver.receive(request, response));
  const bound = await listening(server, port);
  // A reader of the next line may interrupt immediately.
  using interruption = new Interruption(options.stop);
  receiver.write(`Listening on http://${HOST}:${bound}`);
  await aborted(interruption.signal);
  await ended(server);
  receiver.write(receiver.summary);
  return 0;
}

interface ReceiverOptions extends CommandOptions {
  /** Prints deliveries for programs; absent where people read them. */
  readonly printer: ValuePrinter | undefined;
}

/** The result of verifying a delivery; absent without a secret. */
type Verdict = Awaited<ReturnType<typeof verify>> | undefined;

class Receiver {
  readonly #checking: Checking;
  readonly #options: ReceiverOptions;
  readonly #failures: { readonly how: Failure["how"]; left: number }[];
  readonly #seen = new Map<string, number>();
  #received = 0;
  #verified = 0;

  constructor(checking: Checking, failures: readonly Failure[], options: ReceiverOptions) {
    this.#checking = checking;
    this.#options = options;
    this.#failures = failures.map(({ how, times }) => ({ how, left: times }));
  }

  get summary(): string {
    const verified = this.#checking.secrets.length === 0 ? "" : `, ${this.#verified} verified`;
    return `Ended: ${this.#received} received${verified}`;
  }

  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (request.method !== "POST") {
        this.#print(`${request.method} ${request.url}: not a delivery, responded with 405`);
        response.writeHead(405, { allow: "POST" }).end();
        return;
      }
      const body = await collectBytes(request, MAX_BODY_BYTES);
      if (body === undefined) {
        this.#print(`POST ${request.url}: body larger than ${MAX_BODY_BYTES} bytes, responded with 413`);
        response.writeHead(413, { connection: "close" }).end();
        return;
      }
      await this.#receiveDelivery(request, body, response);
    } catch (error) {
      this.#print(`${request.method} ${request.url}: request failed: ${errorText(error)}`);
      request.socket.destroy();
    }
  }

  async #receiveDelivery(
    request: IncomingMessage,
    body: Uint8Array,
    response: ServerResponse,
  ): Promise<void> {
    this.#received++;
    const verdict = await this.#verdict(request, body);
    const how = this.#nextFailure() ?? 200;
    const delivery = headerOf(request, "x-svc-delivery");
    const event = headerOf(request, "x-svc-event");
    const times = this.#countOf(delivery ?? "");
    this.#report({ event, delivery, times, verdict, how, text: textOfBody(body) });
    if (typeof how === "number") response.writeHead(how).end();
    else if (how === "reset") request.socket.resetAndDestroy();
  }

  #report({ event, delivery, times, verdict, how, text }: ReceivedDelivery): void {
    const { printer, clock } = this.#options;
    if (printer !== undefined) {
      const problem = verdict?.ok === false ? verdict.message : undefined;
      const facts = { event, delivery, times, verified: verdict?.ok, problem, response: how, body: text };
      return printer.printText(JSON.stringify({ at: timeText(clock.now()), ...facts }));
    }
    const done = typeof how === "number"
      ? `responded with ${how}`
      : how === "timeout"
      ? "no response"
      : "connection reset";
    const facts = [
      event ?? "(no x-svc-event)",
      `delivery ${delivery ?? "(no x-svc-delivery)"}${times === 1 ? "" : ` (received ${times} times)`}`,
      verdictText(verdict),
      done,
    ];
    this.#print(facts.join(", "));
    this.write(`  ${shortened(plainText(text), MAX_SHOWN)}`);
  }

  async #verdict(request: IncomingMessage, body: Uint8Array): Promise<Verdict> {
    if (this.#checking.secrets.length === 0) return undefined;
    const headers = headerPairs(request.rawHeaders);
    const result = await verify({ body, headers, now: this.#options.clock.now(), ...this.#checking });
    if (result.ok) this.#verified++;
    return result;
  }

  #nextFailure(): Failure["how"] | undefined {
    const next = this.#failures.find(({ left }) => left > 0);
    if (next === undefined) return undefined;
    next.left--;
    return next.how;
  }

  /** Counts the receptions of a delivery. */
  #countOf(delivery: string): number {
    const times = (this.#seen.get(delivery) ?? 0) + 1;
    this.#seen.delete(delivery);
    this.#seen.set(delivery, times);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    return times;
  }

  /** Writes a line for people, which is no result where programs read those. */
  write(line: string): void {
    const { output, printer } = this.#options;
    if (printer === undefined) output.stdout(line);
    else output.stderr(line);
  }

  #print(text: string): void {
    this.write(`${timeText(this.#options.clock.now())} ${plainText(text)}`);
  }
}

interface ReceivedDelivery {
  readonly event: string | undefined;
  readonly delivery: string | undefined;
  readonly times: number;
  readonly verdict: Verdict;
  readonly how: 200 | Failure["how"];
  readonly text: string;
}

/** A delivery is UTF-8; other senders may send anything, such as an encoded body. */
function textOfBody(body: Uint8Array): string {
  return strictText(body, "utf-8").text ?? `(${body.byteLength} bytes that are not UTF-8)`;
}

function verdictText(verdict: Verdict): string {
  if (verdict === undefined) return "not verified (no secret given)";
  return verdict.ok ? "verified" : `NOT verified: ${verdict.message}`;
}

function failureOf(text: string): Failure {
  const match = HOW.exec(text);
  if (match === null) {
    throw new FlagError(`Invalid --fail "${text}": expected timeout, reset or a status from 300 to 599`);
  }
  const [, word, status, times] = match;
  const how = word === "timeout" || word === "reset" ? word : Number(status);
  return { how, times: times === undefined ? Infinity : Number(times) };
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Names and values, repeated ones too. */
function headerPairs(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, index) => index % 2 === 0 ? [[name, raw[index + 1] ?? ""] as const] : []);
}

async function listening(server: Server, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, HOST, resolve);
  try {
    await promise;
  } catch (error) {
    throw new CommandError(`Cannot listen on "${HOST}:${port}": ${errorText(error)}`, { cause: error });
  }
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

/** Closes the server and all of its connections. */
async function ended(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  await promise;
}

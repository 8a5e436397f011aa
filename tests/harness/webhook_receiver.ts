import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

/** A request as it came in. */
export interface Reception {
  /** The `X-Svc-Delivery` UUID, or the `Idempotency-Key` of a step. */
  readonly id: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** By `performance.now()`. */
  readonly at: number;
}

/** The reaction to a request: a status, no response, or an end of its connection. */
export type Reaction = number | "hang" | "reset";

/**
 * Counts requests by what names them, with all that they bring, and checks each signature. It listens on a loopback
 * its own port.
 */
export class WebhookReceiver implements AsyncDisposable {
  /** Signing secrets as they were shown, by path; a delivery to another path has a wrong signature. */
  readonly secrets = new Map<string, string>();
  readonly receptions: Reception[] = [];
  readonly byId = new Map<string, Reception[]>();
  /** Number of times that the connection of each was reset in place of an answer. */
  readonly resets = new Map<string, number>();
  readonly problems: string[] = [];
  maxAgeMs = 60_000;
  /** Decides on a request; `count` tells how often this one has come, itself included. */
  react: (reception: Reception, count: number) => Reaction | Promise<Reaction> = () => 200;
  /** The response; a JSON text. */
  answer: (reception: Reception) => string = () => "{}";
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Starts one. */
  static async start(): Promise<WebhookReceiver> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    const receiver = new WebhookReceiver(server);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      receiver.#take(request, response).catch(() => response.destroy());
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await promise;
    return receiver;
  }

  /** Its URL: `http://127.0.0.1:port`. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") {
      throw new Error("Cannot name the receiver: it is closed");
    }
    return `http://127.0.0.1:${address.port}`;
  }

  /** Those that came more than once. */
  get repeated(): Reception[][] {
    return [...this.byId.values()].filter(({ length }) => length > 1);
  }

  /** Ends it with its connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
    const { headers, url: path = "" } = request;
    const id = String(headers["x-svc-delivery"] ?? headers["idempotency-key"] ?? "");
    const reception = { id, path, headers, body: new TextDecoder().decode(bytes), at: performance.now() };
    if (headers["x-svc-delivery"] !== undefined) this.#check(reception, bytes);
    this.receptions.push(reception);
    const same = this.byId.get(id);
    if (same === undefined) this.byId.set(id, [reception]);
    else same.push(reception);
    const reaction = await this.react(reception, same?.length ?? 1);
    if (reaction === "hang") return;
    if (reaction === "reset") {
      this.resets.set(id, (this.resets.get(id) ?? 0) + 1);
      return void request.socket.destroy();
    }
    response.writeHead(reaction, { "content-type": "application/json" });
    response.end(this.answer(reception));
  }

  #check({ id, path, headers, body }: Reception, bytes: Uint8Array): void {
    const problem = (text: string) => void this.problems.push(`delivery ${id} to ${path}: ${text}`);
    const secret = this.secrets.get(path) ?? "";
    const wanted = `sha256=${createHmac("sha256", secret).update(bytes).digest("hex")}`;
    if (headers["x-svc-signature"] !== wanted) problem("its signature is wrong");
    const ageMs = Math.abs(Date.now() - 1_000 * Number(headers["x-svc-timestamp"]));
    if (!(ageMs < this.maxAgeMs)) problem(`its time stamp is ${ageMs} ms away`);
    if (headers["x-svc-event"] !== JSON.parse(body).event) problem("its header names another event");
    if (headers["content-type"] !== "application/json") problem("its content type is another");
  }
}

import { assertEquals } from "@std/assert";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { api, type ApiBody, WebhookFolder } from "../../harness/webhook_weir.ts";
import type { Env } from "./settings_case.ts";

const TOGETHER_MS = 60_000;

/** A service with webhooks, as a case looks at it. */
export interface WebhookLook {
  readonly service: ServeFixture;
  readonly folder: WebhookFolder;
  /** Address of the HTTP port. */
  readonly http: string;
}

/** What two services with webhooks are compared by. */
export interface WebhookComparison {
  /** Settings that both have; an empty one is not set. */
  readonly env?: Env;
  /** Workflow files of both. */
  readonly workflows?: Readonly<Record<string, string>>;
  look(look: WebhookLook): unknown;
  readonly unset: unknown;
  readonly set: unknown;
}

/** Looks at a service without the changed settings and at one with them, each with a store of its own. */
export async function compareWebhooks(changed: Env, comparison: WebhookComparison): Promise<void> {
  const { env = {}, workflows, look, unset, set } = comparison;
  const seen: unknown[] = [];
  for (const extra of [{}, changed]) {
    await using folder = await WebhookFolder.make(workflows);
    seen.push(await lookAt(folder, { ...env, ...extra }, look));
  }
  assertEquals(seen, [unset, set]);
}

/** Starts a service in this folder and looks at it. */
export async function lookAt<T>(
  folder: WebhookFolder,
  env: Env,
  look: (look: WebhookLook) => T | Promise<T>,
): Promise<T> {
  await using service = await ServeFixture.start({ env: { ...folder.env, ...env } });
  await until(
    "the store",
    async () => !(await service.page("/healthcheck")).includes("webhooks: starting"),
  );
  return await look({ service, folder, http: service.running.addresses.http });
}

/** Makes an endpoint and posts so many events; answers the deliveries once each has had its first attempt. */
export async function firstAttempts(http: string, url: string, count = 1): Promise<readonly ApiBody[]> {
  assertEquals((await api(http, "/endpoints", { body: { url } })).status, 201);
  for (let n = 0; n < count; n++) await api(http, "/events", { body: { event: "a", data: { n } } });
  return await until("the first attempts", async () => {
    const { items } = (await api(http, "/deliveries")).body;
    const isOver = ({ attempts }: ApiBody) => (attempts as ApiBody[])[0]?.["finishedAt"] !== undefined;
    return items.length === count && items.every(isOver) && items;
  });
}

/** What the first attempt of a delivery came to: a status, or a kind of error. */
export function resultOf(delivery: ApiBody | undefined): unknown {
  const [first] = (delivery?.["attempts"] ?? []) as ApiBody[];
  return first?.["errorKind"] ?? first?.status;
}

/** Starts the workflow of this name so many times; answers the executions once each has ended. */
export async function endedExecutions(
  http: string,
  workflow: string,
  count = 1,
): Promise<readonly ApiBody[]> {
  const { body: { key } } = await api(http, "/triggers", { body: { name: workflow, workflow } });
  for (let n = 0; n < count; n++) {
    const { status } = await api(http, `/workflows/triggers/${workflow}`, { token: key, body: { n } });
    assertEquals(status, 202);
  }
  return await until("the executions to end", async () => {
    const { items } = (await api(http, "/executions")).body;
    return items.length === count && items.every(({ status }) => !/queued|running/.test(status)) && items;
  });
}

/** The status of a call of a trigger for this workflow, and the code where it is refused. */
export async function triggerAnswer(http: string, workflow: string, body: unknown = {}): Promise<unknown> {
  const { body: { key } } = await api(http, "/triggers", { body: { name: workflow, workflow } });
  const answer = await api(http, `/workflows/triggers/${workflow}`, { token: key, body });
  return answer.body.code ?? answer.status;
}

/** A receiver that answers each request after a while, and knows how many it had at once. */
export class SlowReceiver implements AsyncDisposable {
  /** Most requests that were open at once. */
  most = 0;
  #open = 0;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #together = Promise.withResolvers<void>();
  readonly #timer: ReturnType<typeof setTimeout> | undefined;

  /** The first wait for as many as `atOnce` or `release`; not for longer than a minute. */
  constructor(delayMs: number, atOnce: number) {
    this.#timer = atOnce > 1 ? setTimeout(this.#together.resolve, TOGETHER_MS) : undefined;
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      this.most = Math.max(this.most, ++this.#open);
      await request.body?.cancel();
      if (this.most >= atOnce) this.#together.resolve();
      await this.#together.promise;
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      this.#open--;
      return new Response("{}");
    });
  }

  /** Where it is. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  /** From now on requests wait for no others. */
  release(): void {
    clearTimeout(this.#timer);
    this.#together.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
    await this.#server.shutdown();
  }
}

import { until } from "./until.ts";
import { post, takenCall, type WebhookAnswered, webhookCall } from "./webhook_client.ts";
import type { WebhookReceiver } from "./webhook_receiver.ts";

/** The token of the administration. */
export const ADMIN_TOKEN = "token-of-the-administration-in-tests-0123456789";

const LISTS = ["endpoints", "triggers", "event-keys", "events", "deliveries", "executions", "audit"];

/** A limit that nothing reaches, for `decide`. */
export const SHOP_RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1000000000 }\n",
};
const DECISION = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "bob" }] }] };

/** Calls of a test to a Weir with webhooks, wherever it runs. */
export abstract class WebhookCalls {
  /** `http://127.0.0.1:port`. */
  abstract readonly base: string;
  /** Address of the debug pages: `host:port`. */
  abstract readonly debugAddress: string;

  /** The URL of a path of the API, at each try. */
  protected urlOf(path: string): string | ((tries: number) => string) {
    return `${this.base}/api/v1${path}`;
  }

  /** A call of the administration. */
  async api(method: string, path: string, body?: unknown): Promise<WebhookAnswered> {
    return await takenCall(`${this.base}/api/v1${path}`, { method, token: ADMIN_TOKEN, body });
  }

  /** Everything of a list. */
  async all(path: string): Promise<readonly WebhookAnswered["body"][]> {
    const items: WebhookAnswered["body"][] = [];
    let cursor: string | undefined;
    do {
      const joint = path.includes("?") ? "&" : "?";
      const more = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const body = await this.#page(path, `${path}${joint}limit=200${more}`);
      items.push(...body.items);
      cursor = body.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  /** A page of a list; a busy service may ask for another try. */
  async #page(list: string, path: string): Promise<WebhookAnswered["body"]> {
    return await until(`a page of "${list}"`, async () => {
      const { status, body } = await this.api("GET", path);
      if (status === 200) return body;
      throw new Error(`Cannot list "${list}": ${status} ${JSON.stringify(body)}`);
    });
  }

  /** Makes an endpoint at a path of the receiver, which learns its secret; answers its record. */
  async endpoint(
    receiver: WebhookReceiver,
    path: string,
    fields: Readonly<Record<string, unknown>> = {},
  ): Promise<WebhookAnswered["body"]> {
    const made = await this.made("/endpoints", { url: `${receiver.url}${path}`, ...fields });
    receiver.secrets.set(path, made.secret);
    return made;
  }

  /** Makes a record; answers it. */
  async made(path: string, fields: Readonly<Record<string, unknown>>): Promise<WebhookAnswered["body"]> {
    const { status, body } = await this.api("POST", path, fields);
    if (status !== 201) throw new Error(`Cannot make one of "${path}": ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Posts an event until it is taken. */
  async event(data: unknown, key: string, kind = "agent.reply.completed"): Promise<WebhookAnswered> {
    return await post(this.urlOf("/events"), { event: kind, data }, { token: ADMIN_TOKEN, key });
  }

  /** Calls a trigger until it is taken. */
  async trigger(name: string, token: string, body: unknown, key?: string): Promise<WebhookAnswered> {
    return await post(this.urlOf(`/workflows/triggers/${name}`), body, { token, key });
  }

  /** Calls a trigger with a signature until it is taken. */
  async signedTrigger(
    name: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<WebhookAnswered> {
    return await post(this.urlOf(`/workflows/triggers/${name}`), body, { headers });
  }

  /** Asks for a decision by the shop rules; answers its status. */
  async decide(): Promise<number> {
    return (await webhookCall(`${this.base}/json`, { body: DECISION })).status;
  }

  /**
   * Asks for one decision after the other. `more` waits for some, and `end` ends it and answers the statuses of those that
   * were refused.
   */
  decideSteadily(): { more(): Promise<void>; end(): Promise<readonly number[]> } {
    let [count, isOver] = [0, false];
    const refusals: number[] = [];
    const asking = (async () => {
      while (!isOver) {
        const status = await this.decide();
        count++;
        if (status !== 200) refusals.push(status);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    // Where the test fails before the end, its own error is the one to tell of.
    asking.catch(() => isOver = true);
    const more = async () => {
      const begin = count;
      await until("decisions", () => isOver || count > begin + 10);
    };
    return {
      more,
      async end() {
        await more();
        isOver = true;
        await asking;
        return refusals;
      },
    };
  }

  /** A metric of the webhook service, as its debug page shows it, such as `lost_claims`. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.debugAddress}/stats`)).text();
    const start = `ratelimit.webhooks.${name}: `;
    const line = text.split("\n").find((one) => one.startsWith(start));
    if (line === undefined) throw new Error(`Cannot find the metric "${name}": the page does not show it`);
    return Number(line.slice(start.length));
  }

  /** Every list, its first records, and every page of the debug port, as texts. */
  async everything(): Promise<string[]> {
    const answers: string[] = [];
    for (const list of LISTS) {
      const { body } = await this.#shown(`/${list}?limit=200`);
      answers.push(JSON.stringify(body));
      for (const { id } of (body.items ?? []).slice(0, 5)) {
        answers.push(JSON.stringify((await this.#shown(`/${list}/${id}`)).body));
      }
    }
    for (const path of ["/metrics", "/stats", "/rlconfig", "/", "/json", "/healthcheck"]) {
      answers.push(await (await fetch(`http://${this.debugAddress}${path}`)).text());
    }
    return answers;
  }

  /** The answer of a path at this moment, a refusal too. */
  async #shown(path: string): Promise<WebhookAnswered> {
    return await webhookCall(`${this.base}/api/v1${path}`, { method: "GET", token: ADMIN_TOKEN });
  }

  /** Health as it is shown. */
  async health(): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${this.base}/healthcheck`);
    return { status: response.status, text: await response.text() };
  }

  /** Returns whether nothing is left to be delivered. */
  async isDelivered(): Promise<boolean> {
    for (const state of ["attempting", "retrying"]) {
      const { body } = await this.api("GET", `/deliveries?state=${state}&limit=1`);
      if (body.items.length > 0) return false;
    }
    return true;
  }

  /** Returns whether no execution is left to be carried out. */
  async isCarriedOut(): Promise<boolean> {
    for (const state of ["queued", "running"]) {
      const { body } = await this.api("GET", `/executions?state=${state}&limit=1`);
      if (body.items.length > 0) return false;
    }
    return true;
  }
}

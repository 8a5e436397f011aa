import { createHash } from "node:crypto";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Logger } from "../../src/base/log.ts";
import type { StoreSettings, WebhookOptions } from "../../src/webhooks/service/message.ts";
import { openWebhookService } from "../../src/webhooks/service/opening.ts";
import type { WebhookService } from "../../src/webhooks/service/service.ts";
import { ADMINISTRATOR } from "./administrators.ts";
import { QUIET } from "./sqlite_fixture.ts";

/** The key that seals secrets. */
export const SERVICE_KEY = new Uint8Array(32).fill(1).toBase64();

/** Options of a service on a store; its limits strike nothing, and its retention keeps everything. */
export const SERVICE_OPTIONS = {
  encryptionKeys: [SERVICE_KEY],
  timeoutMs: 60_000,
  connectTimeoutMs: 60_000,
  retentionMs: 100 * 365 * 86_400_000,
  disableAfterMs: 0,
  maxInFlight: 10,
  allowCidrs: ["127.0.0.0/8"],
  workflowEnv: {},
  workflowAllowCidrs: [],
  maxRunning: 10,
  isTraced: false,
  version: "test",
} as const;

/** Opens a service in this thread, as a worker does, and stops it at the end of an `await using`. */
export async function openService(
  store: StoreSettings,
  { options = {}, clock = systemClock, logger = QUIET }: {
    readonly options?: Partial<WebhookOptions>;
    readonly clock?: Clock;
    readonly logger?: Logger;
  } = {},
): Promise<WebhookService & AsyncDisposable> {
  const limit = () => Promise.resolve({ code: "OK" } as const);
  const own = { ...SERVICE_OPTIONS, store, ...options };
  const service = await openWebhookService({ options: own, limit, clock, logger });
  return Object.assign(service, { [Symbol.asyncDispose]: () => service.stop(60_000) });
}

/** A call of the administration; answers the body. */
export async function administer(service: WebhookService, method: string, path: string, sent?: object) {
  const call = { requestId: "r", administrator: ADMINISTRATOR, method, path, query: "" };
  const { body } = await service.administer(
    sent === undefined ? call : { ...call, body: JSON.stringify(sent) },
  );
  return body === "" ? undefined : JSON.parse(body);
}

/** Starts an execution by a trigger; answers its id. */
export async function startRun(service: WebhookService, name: string, key: string): Promise<string> {
  const keyHash = createHash("sha256").update(key).digest("hex");
  const { body } = await service.acceptTrigger({ requestId: "r", name, keyHash, body: "{}" });
  return JSON.parse(body).executionId;
}

import type { OpenApiService } from "../../harness/openapi_service.ts";
import { unknown } from "./openapi_trigger_calls.ts";
import type { WebhookReceiver } from "../../harness/webhook_receiver.ts";

/** Events that wait for an endpoint. */
export const HELD = 50;

/** Replays to an endpoint with half of a full backlog, which wait. */
export async function replays(service: OpenApiService, receiver: WebhookReceiver): Promise<void> {
  const fields = { url: `${receiver.url}/held`, events: ["held.*"], enabled: false };
  const { id } = (await service.call("createEndpoint", { status: 201, body: fields })).body;
  for (let count = 0; count < HELD; count++) {
    await service.call("postEvent", { status: 202, body: { event: "held.order", data: { count } } });
  }
  const call = { path: [id], body: { since: "1h", filter: { count: { less: 9 } } } };
  await service.call("replayEvents", { ...call, body: { ...call.body, dryRun: true } });
  const started = (await service.call("replayEvents", { ...call, status: 202 })).body;
  for (let count = 1; count < 10; count++) await service.call("replayEvents", { ...call, status: 202 });
  await service.call("replayEvents", { ...call, status: 409, code: "too_many_replays" });
  await service.call("retryDeliveries", { status: 409, code: "too_many_replays" });
  const path = [started.id];
  await service.call("cancelReplay", { path });
  await service.call("cancelReplay", { path, status: 409, code: "already_ended" });
  await service.call("retryDeliveries", { body: { endpointId: id, dryRun: true } });
  await service.call("retryDeliveries", { status: 202, body: { endpointId: id, state: "retrying" } });
  await service.call("listReplays", { query: `endpointId=${id}&state=cancelled` });
  await service.call("getReplay", { path });
  await unknown(service, "replayEvents", { since: "1h" });
  for (const name of ["getReplay", "cancelReplay"]) await unknown(service, name);
}

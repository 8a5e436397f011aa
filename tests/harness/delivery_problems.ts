import type { AnswerBody } from "./webhook_client.ts";
import type { Reception, WebhookReceiver } from "./webhook_receiver.ts";

/** The problems of the deliveries of that many events, each of which has its number as `data.n`. */
export function deliveriesProblems(
  deliveries: readonly AnswerBody[],
  { receiver, events }: {
    readonly receiver: Pick<WebhookReceiver, "byId" | "resets" | "receptions">;
    readonly events: number;
  },
): string[] {
  const problems: string[] = [];
  if (deliveries.length !== events) problems.push(`there are ${deliveries.length} deliveries`);
  const isDelivery = ({ headers }: Pick<Reception, "headers">) => headers["x-svc-delivery"] !== undefined;
  const received = receiver.receptions.filter(isDelivery);
  const arrived = new Set(received.map(({ body }) => Number(JSON.parse(body).data.n)));
  for (let n = 0; n < events; n++) if (!arrived.has(n)) problems.push(`event ${n} did not arrive`);
  for (const delivery of deliveries) problems.push(...deliveryProblems(delivery, receiver));
  const known = new Set(deliveries.map(({ id }) => id));
  for (const { id } of received) if (!known.has(id)) problems.push(`delivery ${id} is unknown`);
  return problems;
}

/** The problems of one delivery, by its record and by the received requests. */
export function deliveryProblems(
  delivery: AnswerBody,
  receiver: Pick<WebhookReceiver, "byId" | "resets">,
): string[] {
  const { id, state, attempts } = delivery;
  const problem = (text: string) => `delivery ${id}: ${text}`;
  const arrived = receiver.byId.get(id) ?? [];
  const results = attempts.map(({ result }) => result);
  const problems: string[] = [];
  if (state !== "acknowledged") problems.push(problem(`it is ${state}`));
  if (new Set(arrived.map(({ body }) => body)).size !== 1) {
    problems.push(problem("it came with several bodies"));
  }
  if (arrived.length === 0) problems.push(problem("it did not come"));
  // The platform sends a request once more that met the end of a connection which had been used before.
  if (arrived.length > attempts.length + (receiver.resets.get(id) ?? 0)) {
    problems.push(problem(`it came ${arrived.length} times in ${attempts.length} attempts`));
  }
  const early = results.slice(0, -1).filter((result) => result !== "interrupted" && result !== "failed");
  if (early.length > 0 || results.at(-1) !== "acknowledged") {
    problems.push(problem(`its attempts ended as ${results.join(", ")}`));
  }
  return problems;
}

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { errorText } from "../../base/error_text.ts";
import type { AccessTokens } from "./access_tokens.ts";
import { openCredentials, type Unsealer } from "./credentials.ts";
import { deliveryRequest } from "./request.ts";
import { eventBody } from "../model/event.ts";
import { type ComparedEvent, subscriptionMismatch } from "../model/event_filter.ts";
import { Dialler, type DialOptions, type DialTarget, targetOf } from "../../net/outbound/dial.ts";
import { renderBody } from "../model/delivery_body.ts";
import type { Delivery, Endpoint } from "../model/records.ts";
import { certificateDate } from "../../net/tls_problem.ts";
import type { DeliverySender } from "./sender.ts";
import { urlShapeProblem } from "../../net/outbound/url_problem.ts";

/** The result of one stage of a dry run. */
export interface CheckedStage {
  readonly stage: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** The kind of the event that tests an endpoint. */
export const CHECK_KIND = "weir.endpoint.check";

/** Options of a dry run. */
export interface EndpointCheckOptions extends DialOptions {
  readonly sender: DeliverySender;
  readonly tokens: Pick<AccessTokens, "get">;
  readonly secretBox: Unsealer;
  readonly version: string;
  readonly timeoutMs: number;
  readonly newId: () => string;
}

/** A dry run of an endpoint: each stage of a delivery separately, those after a failed one skipped. */
export type EndpointCheck = (endpoint: Endpoint, event?: ComparedEvent) => Promise<readonly CheckedStage[]>;

/** Creates dry runs. */
export function createEndpointCheck(options: EndpointCheckOptions): EndpointCheck {
  return async (endpoint, event = {}) => {
    const dialler = new Dialler({ ...options, isPlainInsideOnly: true });
    try {
      return await runStages([...filterStages(endpoint, event), ...stagesOf(endpoint, dialler, options)]);
    } finally {
      await dialler.close();
    }
  };
}

/** Runs a stage; answers its details, or throws. */
type Stage = readonly [name: string, run: () => string | Promise<string>];

async function runStages(stages: readonly Stage[]): Promise<readonly CheckedStage[]> {
  const done: CheckedStage[] = [];
  let failed: string | undefined;
  for (const [stage, run] of stages) {
    if (failed !== undefined) {
      done.push({ stage, ok: false, detail: `skipped: ${failed} failed` });
      continue;
    }
    try {
      done.push({ stage, ok: true, detail: await run() });
    } catch (error) {
      done.push({ stage, ok: false, detail: errorText(error) });
      failed = stage;
    }
  }
  return done;
}

const PROXIED = "left to the proxy";

/** Compares the event of the call with the endpoint; absent where there is nothing to compare. */
function filterStages(endpoint: Endpoint, event: ComparedEvent): readonly Stage[] {
  const { filter } = endpoint;
  const isGiven = event.kind !== undefined || event.data !== undefined;
  if (filter === undefined && !isGiven) return [];
  return [["filter", () => {
    const mismatch = subscriptionMismatch(endpoint, event);
    if (mismatch !== undefined) throw new Error(mismatch);
    if (filter === undefined || event.data !== undefined) return "the endpoint receives this event";
    return "not compared: the call has no data";
  }]];
}

function stagesOf(endpoint: Endpoint, dialler: Dialler, options: EndpointCheckOptions): readonly Stage[] {
  const isProxied = options.proxy !== undefined;
  let target: DialTarget = { host: "", port: 0, isTls: true };
  let addresses: readonly string[] = [];
  let pending = dialler.begin();
  let socket: Socket | undefined;
  return [
    ["url", () => {
      const problem = urlShapeProblem(endpoint.url);
      if (problem !== undefined) throw new Error(problem);
      const url = new URL(endpoint.url);
      target = targetOf(url);
      // The path may be a secret.
      return url.origin;
    }],
    ["resolve", async () => {
      if (isProxied) return PROXIED;
      addresses = await dialler.resolve(target.host);
      return addresses.join(", ");
    }],
    ["address", () => {
      if (isProxied) return PROXIED;
      addresses = dialler.checked(target, addresses);
      return addresses.join(", ");
    }],
    ["connect", async () => {
      pending = dialler.begin();
      socket = await dialler.connect(target, addresses, pending);
      return isProxied ? "through the proxy" : `to ${socket.remoteAddress} port ${target.port}`;
    }],
    ["tls", async () => {
      if (!target.isTls || socket === undefined) return "none: the URL is http";
      const { identity } = await openCredentials(endpoint, options.secretBox);
      return certificateText(await dialler.secure({ ...target, identity }, { socket, addresses, pending }));
    }],
    ...tokenStages(endpoint, options),
    ["sample", async () => {
      // A receiver may serve one connection at a time.
      await dialler.close();
      return await sendSample(endpoint, options);
    }],
  ];
}

/** Requests the access token of an endpoint; absent where it needs none. */
function tokenStages(
  endpoint: Endpoint,
  { tokens, secretBox, clock, timeoutMs }: EndpointCheckOptions,
): readonly Stage[] {
  if (endpoint.authentication?.type !== "oauth2") return [];
  return [["token", async () => {
    const { grant } = await openCredentials(endpoint, secretBox);
    if (grant === undefined) return "none";
    const limit = new AbortController();
    const cancel = clock.after(
      endpoint.timeoutMs ?? timeoutMs,
      () => limit.abort(new Error("no access token in time")),
    );
    try {
      const { expiresAt } = await tokens.get(grant, limit.signal);
      return `an access token for ${Math.round((expiresAt - clock.elapsed()) / 1_000)} s`;
    } finally {
      cancel();
    }
  }]];
}

function certificateText(socket: TLSSocket): string {
  const { subject, issuer, valid_to: validTo } = socket.getPeerCertificate();
  const names = `subject ${nameText(subject)}, issuer ${nameText(issuer)}`;
  return `${names}, valid to ${certificateDate(validTo)}, ${socket.getProtocol()}`;
}

function nameText(name: object): string {
  return Object.entries(name).map(([key, value]) => `${key}=${String(value)}`).join(" ") || "(empty)";
}

/** The tolerance of receivers for the timestamp of a signature. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** Sends a signed request without data of a tenant. */
async function sendSample(endpoint: Endpoint, options: EndpointCheckOptions): Promise<string> {
  const { sender, clock, newId } = options;
  const now = clock.now();
  const delivery: Delivery = {
    id: newId(),
    eventId: newId(),
    endpointId: endpoint.id,
    event: CHECK_KIND,
    state: "attempting",
    createdAt: now,
    slot: 0,
  };
  const body = eventBody(CHECK_KIND, "{}");
  const event = { id: delivery.eventId, kind: CHECK_KIND, createdAt: now, body };
  const rendered = renderBody(endpoint, event);
  // A template may require the data of its events.
  const isRendered = rendered !== undefined && rendered.problem === undefined;
  const sent = isRendered ? { form: rendered.form, body: rendered.body } : { body };
  const sample = { delivery, endpoint, ...sent };
  const request = await deliveryRequest(sample, { ...options, now, sentAt: now });
  const begin = clock.elapsed();
  const { signal } = new AbortController();
  const { status, errorKind, error, date } = await sender.send(request, { signal });
  const difference = date === undefined ? "" : clockText(date - clock.now());
  if (errorKind !== undefined) throw new Error(`${error ?? errorKind}${difference}`);
  return `the receiver responded with ${status} after ${Math.round(clock.elapsed() - begin)} ms${difference}`;
}

/** Minutes per unit. */
const UNITS: readonly (readonly [length: number, unit: string])[] = [[1_440, "d"], [60, "h"]];

/** A difference that makes a receiver reject the timestamp, in its largest unit with at least two; else empty. */
function clockText(aheadMs: number): string {
  if (Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS) return "";
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const [length, unit] = UNITS.find(([length]) => minutes >= 2 * length) ?? [1, "min"];
  const count = Math.round(minutes / length);
  return `; its clock is ${count} ${unit} ${aheadMs > 0 ? "ahead of" : "behind"} this machine`;
}

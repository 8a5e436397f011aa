import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import type { Cidrs } from "../model/address_ranges.ts";
import { deliveryRequest, signingSecret } from "./request.ts";
import { eventBody } from "../model/event.ts";
import { Dialler, type DialTarget, type Lookup, targetOf } from "../outbound/dial.ts";
import type { Delivery, Endpoint, Sealed } from "../model/records.ts";
import type { DeliverySender, OutgoingDelivery } from "./sender.ts";
import { urlShapeProblem } from "./endpoint_url.ts";

/** What one stage of the dry run came to. */
export interface CheckedStage {
  readonly stage: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** The kind of the event that a dry run sends. */
export const CHECK_KIND = "weir.endpoint.check";

/** What a dry run is made with. */
export interface EndpointCheckOptions {
  readonly allow: Cidrs;
  readonly connectTimeoutMs: number;
  readonly caFile?: string | undefined;
  readonly proxy?: string | undefined;
  readonly clock: Clock;
  readonly sender: DeliverySender;
  readonly secretBox: { unseal(sealed: Sealed): Promise<string> };
  readonly newId: () => string;
  /** Of an attempt, where the endpoint has none of its own. */
  readonly timeoutMs: number;
  /** Of Weir. */
  readonly version: string;
  /** The platform's own when absent. */
  readonly lookup?: Lookup | undefined;
}

/** A dry run of an endpoint: each stage of a delivery by itself, those after a failed one skipped. */
export type EndpointCheck = (endpoint: Endpoint) => Promise<readonly CheckedStage[]>;

/** Makes dry runs. Throws when the file of authorities cannot be used. */
export function createEndpointCheck(options: EndpointCheckOptions): EndpointCheck {
  const { caFile, proxy } = options;
  const authorities = caFile === undefined ? undefined : readAuthoritiesSync("WEBHOOK_CA_FILE", caFile);
  return async (endpoint) => {
    const dialler = new Dialler({
      ...options,
      authorities,
      proxy: proxy === undefined ? undefined : new URL(proxy),
      isPlainInsideOnly: true,
    });
    try {
      return await runStages(stagesOf(endpoint, dialler, options));
    } finally {
      await dialler.close();
    }
  };
}

/** Does the work of a stage and answers what it found; throws when it failed. */
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

function stagesOf(endpoint: Endpoint, dialler: Dialler, options: EndpointCheckOptions): readonly Stage[] {
  const isProxied = options.proxy !== undefined;
  let target: DialTarget = { host: "", port: 0, isTls: true };
  let addresses: readonly string[] = [];
  let dialling = dialler.begin();
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
      dialling = dialler.begin();
      socket = await dialler.connect(target, addresses, dialling);
      return isProxied ? "through the proxy" : `to ${socket.remoteAddress} port ${target.port}`;
    }],
    ["tls", async () => {
      if (!target.isTls || socket === undefined) return "none: the URL is http";
      return certificateText(await dialler.secure(target, { socket, addresses, dialling }));
    }],
    ["sample", async () => await sendSample(endpoint, options)],
  ];
}

/** Who the other end is, and until when. */
function certificateText(socket: TLSSocket): string {
  const { subject, issuer, valid_to: validTo } = socket.getPeerCertificate();
  const expires = new Date(validTo);
  const until = Number.isNaN(expires.getTime()) ? validTo : expires.toISOString();
  return `subject ${nameText(subject)}, issuer ${
    nameText(issuer)
  }, valid to ${until}, ${socket.getProtocol()}`;
}

function nameText(name: object): string {
  return Object.entries(name).map(([key, value]) => `${key}=${String(value)}`).join(" ") || "(empty)";
}

async function sendSample(endpoint: Endpoint, { sender, ...options }: EndpointCheckOptions): Promise<string> {
  const begin = options.clock.elapsed();
  const { status, errorKind, error } = await sender.send(await sampleRequest(endpoint, options), {
    signal: new AbortController().signal,
  });
  if (errorKind !== undefined) throw new Error(error ?? errorKind);
  return `the receiver answered ${status} after ${Math.round(options.clock.elapsed() - begin)} ms`;
}

/** A signed request with nothing of anybody's data. */
async function sampleRequest(
  endpoint: Endpoint,
  { secretBox, clock, newId, timeoutMs, version }: Omit<EndpointCheckOptions, "sender">,
): Promise<OutgoingDelivery> {
  const now = clock.now();
  const secret = signingSecret(endpoint.secrets, now);
  if (secret === undefined) throw new Error("the endpoint has no secret");
  const headers = endpoint.headers === undefined ? "{}" : await secretBox.unseal(endpoint.headers);
  const delivery: Delivery = {
    ...{ id: newId(), eventId: newId(), endpointId: endpoint.id, event: CHECK_KIND },
    ...{ state: "attempting", createdAt: now, slot: 0 },
  };
  return await deliveryRequest({ delivery, endpoint, body: eventBody(CHECK_KIND, "{}") }, {
    ...{
      secret: await secretBox.unseal(secret.sealed),
      headers: JSON.parse(headers),
      now,
      version,
      timeoutMs,
    },
  });
}

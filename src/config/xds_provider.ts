import { createHash } from "node:crypto";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { errorTexts, type Problem } from "../base/problem.ts";
import { DISCOVERY_REQUEST, DISCOVERY_RESPONSE, type WireDiscoveryResponse } from "../wire/discovery.ts";
import type { LoadReceiver, RulesLoad, RulesProvider } from "./provider.ts";
import { isRateLimitConfig, RATE_LIMIT_CONFIG_URL, readResources } from "./xds_resources.ts";
import {
  openXdsStream,
  xdsMetadata,
  type XdsStream,
  type XdsStreamEvents,
  type XdsTarget,
} from "./xds_stream.ts";

interface XdsProviderOptions {
  readonly target: Omit<XdsTarget, "clock" | "logger">;
  readonly node: { readonly id: string; readonly metadata: ReadonlyMap<string, string> };
  readonly waits: XdsWaits;
  readonly clock: Clock;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  readonly logger: Logger;
  /** Called when the server cannot be reached, with the reason, and without one when it can be again. */
  readonly onReachable?: ((reason: string | undefined) => void) | undefined;
  /** Opens a stream; over gRPC when absent. */
  readonly open?: (target: XdsTarget, events: XdsStreamEvents) => XdsStream;
}

const INVALID_ARGUMENT = 3;
/** A stream of this age was connected: without a delivery, nothing was new. */
const STEADY_MS = 30_000;
/** The interval of logs of a server that has sent nothing yet. */
const SILENCE_MS = 30_000;
/** Delay of repeated refusals: servers resend a refused version immediately. */
const REPEATS = { firstMs: 1_000, longestMs: 10_000 };

/** Provides rules from a configuration server over a stream that is reopened when it ends; throws for invalid headers. */
export function createXdsProvider(options: XdsProviderOptions): RulesProvider {
  xdsMetadata(options.target.headers);
  return new XdsProvider(options);
}

/** One stream to the server, with its requests and timers. */
class XdsSession {
  readonly #options: XdsProviderOptions;
  readonly #stream: XdsStream;
  readonly #openedAt: number;
  /** True if it delivered a response. */
  hasDelivered = false;
  /** Of the last response. */
  nonce = "";
  /** The last refusal, and how often it was repeated. */
  refused: { readonly print: string; readonly text: string; times: number } | undefined;
  #cancelAnswer = () => {};
  #cancelSilence = () => {};

  constructor(options: XdsProviderOptions, stream: XdsStream) {
    this.#options = options;
    this.#stream = stream;
    this.#openedAt = options.clock.elapsed();
  }

  /** True if the server was connected, though it may have had nothing new. */
  get wasConnected(): boolean {
    return this.hasDelivered || this.#options.clock.elapsed() - this.#openedAt >= STEADY_MS;
  }

  /** Requests the version after this one, which acknowledges it; with a text it refuses the received one. */
  request(versionInfo: string, refusal?: string): void {
    const { id, metadata } = this.#options.node;
    this.#stream.send(DISCOVERY_REQUEST.encode({
      versionInfo,
      node: { id, cluster: "", metadata: Object.fromEntries(metadata) },
      resourceNames: [],
      typeUrl: RATE_LIMIT_CONFIG_URL,
      responseNonce: this.nonce,
      errorDetail: refusal === undefined ? undefined : { code: INVALID_ARGUMENT, message: refusal },
    }));
  }

  /** Repeats a refusal with a growing delay, so that client and server do not loop. */
  refuseAgain(refused: { times: number }, refuse: () => void): void {
    const waitMs = backoffMs(++refused.times, 1, REPEATS);
    this.#cancelAnswer = this.#options.clock.after(waitMs, refuse);
  }

  /** Cancels a delayed refusal. */
  cancelAnswer(): void {
    this.#cancelAnswer();
  }

  /** Logs periodically that the first rules are missing; usually the server does not know the node. */
  watchSilence(isOver: () => boolean): void {
    if (isOver()) return;
    const { clock, logger, node, target } = this.#options;
    this.#cancelSilence = clock.after(SILENCE_MS, () => {
      if (!this.hasDelivered) {
        logger.warning("No rules from the configuration server yet", { server: target.url, node: node.id });
      }
      this.watchSilence(isOver);
    });
  }

  /** Ends the stream; settles when its connection is closed. */
  async close(): Promise<void> {
    this.end();
    await this.#stream.close();
  }

  /** The stream has ended by itself. */
  end(): void {
    this.#cancelAnswer();
    this.#cancelSilence();
  }
}

/** The waits between streams. */
class XdsAttempts {
  readonly #options: XdsProviderOptions;
  /** Consecutive attempts without a delivery; undefined before the first one ended. */
  #failures: number | undefined;
  #cancel = () => {};

  constructor(options: XdsProviderOptions) {
    this.#options = options;
  }

  get hasRetried(): boolean {
    return this.#failures !== undefined;
  }

  /** Opens a stream after a while, whose milliseconds it returns. */
  retry(wasConnected: boolean, open: () => void): number {
    const { clock, waits, random } = this.#options;
    this.#failures = wasConnected ? 0 : (this.#failures ?? 0) + 1;
    const waitMs = xdsWaitMs(this.#failures, waits, random());
    this.#cancel = clock.after(waitMs, open);
    return waitMs;
  }

  cancel(): void {
    this.#cancel();
  }
}

interface XdsVersion {
  readonly version: string;
  readonly print: string;
}

class XdsProvider implements RulesProvider {
  readonly #options: XdsProviderOptions;
  readonly #target: XdsTarget;
  readonly #stop = new AbortController();
  #onLoad: LoadReceiver = ({ problems }) => Promise.resolve(problems);
  #session: XdsSession | undefined;
  /** The accepted version and its content: a server may reuse the name of a version, or send none. */
  #accepted: XdsVersion | undefined;
  /** True if the next version is loaded even when it was accepted before. */
  #isAsked = false;
  readonly #attempts: XdsAttempts;
  /** The version that is being applied; the message that came last meanwhile follows. */
  #applying: { next: Uint8Array | undefined } | undefined;

  constructor(options: XdsProviderOptions) {
    this.#options = options;
    this.#target = { ...options.target, clock: options.clock, logger: options.logger };
    this.#attempts = new XdsAttempts(options);
  }

  start(onLoad: LoadReceiver): void {
    this.#onLoad = onLoad;
    this.#open();
  }

  reload(): void {
    if (this.#stop.signal.aborted) return;
    this.#isAsked = true;
    this.#session?.cancelAnswer();
    if (this.#session === undefined) this.#open();
    else this.#request();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#attempts.cancel();
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  #open(): void {
    this.#attempts.cancel();
    const open = this.#options.open ?? openXdsStream;
    const stream = open(this.#target, {
      onConnected: () => this.#options.onReachable?.(undefined),
      onMessage: (bytes) => this.#take(bytes),
      onEnd: (reason) => this.#retry(reason),
    });
    this.#session = new XdsSession(this.#options, stream);
    this.#request();
    this.#session.watchSilence(() => this.#accepted !== undefined);
  }

  #retry(reason: string): void {
    if (this.#stop.signal.aborted) return;
    if (this.#applying !== undefined) this.#applying.next = undefined;
    const { logger, onReachable } = this.#options;
    const wasConnected = this.#session?.wasConnected === true;
    this.#session?.end();
    this.#session = undefined;
    if (!wasConnected) onReachable?.(reason);
    const waitMs = this.#attempts.retry(wasConnected, () => this.#open());
    logger.warning("Cannot read rules from the configuration server; retrying", {
      server: this.#target.url,
      reason,
      retrySeconds: Math.round(waitMs) / 1_000,
    });
  }

  #take(bytes: Uint8Array): void {
    if (this.#applying !== undefined) return void (this.#applying.next = bytes);
    let response: WireDiscoveryResponse;
    try {
      response = DISCOVERY_RESPONSE.decode(bytes);
    } catch (error) {
      // Without a nonce it cannot be refused, and later messages may be unreadable too.
      void this.#refusalOf({ sources: undefined, problems: [serverProblem(errorText(error))], version: "" });
      void this.#session?.close();
      return this.#retry("it sent a message that cannot be read");
    }
    if (!isRateLimitConfig(response.typeUrl)) {
      const type = response.typeUrl.slice(0, 200);
      return this.#options.logger.warning("The configuration server sent resources of another type", {
        type,
      });
    }
    const session = this.#session;
    if (session === undefined) return;
    if (this.#attempts.hasRetried && !session.hasDelivered) {
      this.#options.logger.warning("The configuration server is available again");
    }
    session.hasDelivered = true;
    session.nonce = response.nonce;
    session.cancelAnswer();
    this.#answer(session, response);
  }

  #answer(session: XdsSession, response: WireDiscoveryResponse): void {
    const { refused } = session;
    const print = printOf(response);
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    if (!isAsked && print === refused?.print) {
      return session.refuseAgain(refused, () => this.#request(refused.text));
    }
    if (isAsked || print !== this.#accepted?.print) {
      return void this.#apply(session, { version: response.versionInfo, print }, readResources(response));
    }
    session.refused = undefined;
    this.#request();
  }

  async #apply(session: XdsSession, version: XdsVersion, load: RulesLoad): Promise<void> {
    const applying: { next: Uint8Array | undefined } = { next: undefined };
    this.#applying = applying;
    const refusal = await this.#refusalOf(load);
    this.#applying = undefined;
    if (refusal === undefined) this.#accepted = version;
    session.refused = refusal === undefined ? undefined : { print: version.print, text: refusal, times: 0 };
    if (this.#session === session) this.#request(refusal);
    if (applying.next !== undefined && this.#session !== undefined) this.#take(applying.next);
  }

  /** Reports a load; returns why it was refused. */
  async #refusalOf(load: RulesLoad): Promise<string | undefined> {
    try {
      const problems = await this.#onLoad(load);
      return problems.some(({ severity }) => severity === "error") ? refusalText(problems) : undefined;
    } catch (error) {
      this.#options.logger.error("Cannot apply the rules; keeping the previous rules", { error });
      return "the rules could not be applied";
    }
  }

  #request(refusal?: string): void {
    // An empty version makes the server send everything again.
    this.#session?.request(this.#isAsked ? "" : this.#accepted?.version ?? "", refusal);
  }
}

function serverProblem(text: string): Problem {
  return { severity: "error", at: "configuration server", path: "", text };
}

/** Identifies the content of a version, whatever its name. */
function printOf({ versionInfo, resources }: WireDiscoveryResponse): string {
  const hash = createHash("sha256").update(JSON.stringify([versionInfo, resources.length]));
  for (const { typeUrl, value } of resources) {
    hash.update(JSON.stringify([typeUrl, value.length])).update(value);
  }
  return hash.digest("base64");
}

/** Delays between attempts to reach a configuration server, in milliseconds. */
export interface XdsWaits {
  /** After a stream that delivered something. */
  readonly retryMs: number;
  /** Before the second consecutive attempt; doubles up to the maximum. */
  readonly initialMs: number;
  /** Maximum delay, spread included. */
  readonly maxMs: number;
  /** Spread of the doubled delays, from 0 to 1: 0.5 gives half to one and a half times the delay. */
  readonly spread: number;
}

/** Minimum, whatever the settings are. */
const SHORTEST_MS = 100;
/** Limits the exponent, so that powers stay finite. */
const MAX_DOUBLINGS = 40;

/** The delay after this many consecutive attempts without a delivery. `random` is from 0 to below 1. */
export function xdsWaitMs(failures: number, waits: XdsWaits, random: number): number {
  const waitMs = failures === 0 ? waits.retryMs : spreadMs(failures, waits, random);
  return Math.max(waitMs, SHORTEST_MS);
}

function spreadMs(failures: number, { initialMs, maxMs, spread }: XdsWaits, random: number): number {
  const doubledMs = initialMs * 2 ** Math.min(failures - 1, MAX_DOUBLINGS);
  return Math.min(Math.min(doubledMs, maxMs) * (1 + spread * (2 * random - 1)), maxMs);
}

const MAX_PROBLEMS = 20;
const MAX_LENGTH = 4_000;

/** The text of a refusal: the first errors, one per line. */
function refusalText(problems: readonly Problem[]): string {
  const text = errorTexts(problems, MAX_PROBLEMS).join("\n");
  // Half of a surrogate pair is not UTF-8.
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH).toWellFormed()}…` : text;
}

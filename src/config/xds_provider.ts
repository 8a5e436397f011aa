import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { type Problem, problemText } from "../base/problem.ts";
import { DISCOVERY_REQUEST, DISCOVERY_RESPONSE, type WireDiscoveryResponse } from "../wire/discovery.ts";
import type { RulesLoad, RulesProvider } from "./provider.ts";
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
  /** Opens a stream; over gRPC when absent. */
  readonly open?: (target: XdsTarget, events: XdsStreamEvents) => XdsStream;
}

const INVALID_ARGUMENT = 3;
/** A stream of this age was connected: without a delivery, nothing was new. */
const STEADY_MS = 30_000;
/** How often a server that has sent nothing yet is logged. */
const SILENCE_MS = 30_000;
/** Delay of repeated refusals: servers resend a refused version immediately. */
const FIRST_REPEAT_MS = 1_000;
const LONGEST_REPEAT_MS = 10_000;

/** Provides rules from a configuration server over a stream that is reopened when it ends; throws for invalid headers. */
export function createXdsProvider(options: XdsProviderOptions): RulesProvider {
  xdsMetadata(options.target.headers);
  return new XdsProvider(options);
}

class XdsProvider implements RulesProvider {
  readonly #options: XdsProviderOptions;
  readonly #target: XdsTarget;
  #onLoad: (load: RulesLoad) => readonly Problem[] = (load) => load.problems;
  #stream: XdsStream | undefined;
  #openedAt = 0;
  /** Whether the current stream delivered a response. */
  #hasDelivered = false;
  /** Of the current stream. */
  #nonce = "";
  /** The accepted version; absent before the first. */
  #accepted: string | undefined;
  /** Its content: a server may reuse a version name, or send none. */
  #acceptedPrint = "";
  /** The last refusal on the current stream, and how often it was repeated. */
  #refused: { readonly print: string; readonly text: string; times: number } | undefined;
  /** Whether the next version is loaded even when it was accepted before. */
  #isAsked = false;
  /** Consecutive attempts without a delivery. */
  #failures = 0;
  /** Whether a failure was logged and no response arrived since. */
  #isLost = false;
  #cancelAttempt = () => {};
  #cancelAnswer = () => {};
  #cancelSilence = () => {};
  #isClosed = false;

  constructor(options: XdsProviderOptions) {
    this.#options = options;
    this.#target = { ...options.target, clock: options.clock, logger: options.logger };
  }

  start(onLoad: (load: RulesLoad) => readonly Problem[]): void {
    this.#onLoad = onLoad;
    this.#open();
  }

  reload(): void {
    if (this.#isClosed) return;
    this.#isAsked = true;
    this.#cancelAnswer();
    if (this.#stream === undefined) this.#open();
    else this.#request();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelAttempt();
    this.#cancelAnswer();
    this.#cancelSilence();
    this.#stream?.close();
    this.#stream = undefined;
    return Promise.resolve();
  }

  #open(): void {
    this.#cancelAttempt();
    this.#cancelSilence();
    this.#openedAt = this.#options.clock.elapsed();
    this.#hasDelivered = false;
    this.#nonce = "";
    this.#refused = undefined;
    const open = this.#options.open ?? openXdsStream;
    this.#stream = open(this.#target, {
      onMessage: (bytes) => this.#take(bytes),
      onEnd: (reason) => this.#retry(reason),
    });
    this.#request();
    this.#watchSilence();
  }

  /** Logs periodically that the first rules are missing; usually the server does not know the node. */
  #watchSilence(): void {
    if (this.#accepted !== undefined) return;
    const { clock, logger, node } = this.#options;
    this.#cancelSilence = clock.after(SILENCE_MS, () => {
      const server = JSON.stringify(this.#target.url);
      if (!this.#hasDelivered) {
        logger.warning(
          `The configuration server ${server} has sent nothing yet for the node ${JSON.stringify(node.id)}`,
        );
      }
      this.#watchSilence();
    });
  }

  #retry(reason: string): void {
    if (this.#isClosed) return;
    this.#cancelAnswer();
    this.#cancelSilence();
    this.#stream = undefined;
    const { clock, waits, random, logger } = this.#options;
    const isSteady = clock.elapsed() - this.#openedAt >= STEADY_MS;
    this.#failures = this.#hasDelivered || isSteady ? 0 : this.#failures + 1;
    const waitMs = xdsWaitMs(this.#failures, waits, random());
    const server = JSON.stringify(this.#target.url);
    const next = `the next attempt is in ${Math.round(waitMs) / 1_000} s`;
    logger.warning(`Cannot read rules from the configuration server ${server}: ${reason}; ${next}`);
    this.#isLost = true;
    this.#cancelAttempt = clock.after(waitMs, () => this.#open());
  }

  #take(bytes: Uint8Array): void {
    let response: WireDiscoveryResponse;
    try {
      response = DISCOVERY_RESPONSE.decode(bytes);
    } catch (error) {
      // Without a nonce it cannot be refused, and later messages may be unreadable too.
      this.#tell({ sources: undefined, problems: [serverProblem(errorText(error))], version: "" });
      this.#stream?.close();
      return this.#retry("it sent a message that cannot be read");
    }
    if (!isRateLimitConfig(response.typeUrl)) {
      const type = JSON.stringify(response.typeUrl.slice(0, 200));
      return this.#options.logger.warning(
        `The configuration server sent resources of type ${type}, which it was not asked for`,
      );
    }
    this.#hasDelivered = true;
    if (this.#isLost) this.#options.logger.warning("The configuration server is available again");
    this.#isLost = false;
    this.#nonce = response.nonce;
    this.#cancelAnswer();
    this.#answer(response);
  }

  #answer(response: WireDiscoveryResponse): void {
    const version = response.versionInfo;
    const print = printOf(response);
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    if (!isAsked && print === this.#refused?.print) return this.#refuseAgain(this.#refused);
    if (isAsked || print !== this.#acceptedPrint) {
      const refusal = this.#tell(readResources(response));
      if (refusal !== undefined) {
        this.#refused = { print, text: refusal, times: 0 };
        return this.#request(refusal);
      }
      this.#accepted = version;
      this.#acceptedPrint = print;
    }
    this.#refused = undefined;
    this.#request();
  }

  /** Reports a load; returns why it was refused. */
  #tell(load: RulesLoad): string | undefined {
    try {
      const problems = this.#onLoad(load);
      return problems.some(({ severity }) => severity === "error") ? refusalText(problems) : undefined;
    } catch (error) {
      this.#options.logger.error("Cannot apply the rules; keeping the previous rules", { error });
      return "the rules could not be applied";
    }
  }

  /** Repeats a refusal with a growing delay, so that client and server do not loop. */
  #refuseAgain(refused: { readonly text: string; times: number }): void {
    const waitMs = Math.min(FIRST_REPEAT_MS * 2 ** Math.min(refused.times, 10), LONGEST_REPEAT_MS);
    refused.times++;
    this.#cancelAnswer = this.#options.clock.after(waitMs, () => this.#request(refused.text));
  }

  /** Requests the next version, which acknowledges the accepted one; with a text it refuses the received one. */
  #request(refusal?: string): void {
    const { id, metadata } = this.#options.node;
    this.#stream?.send(DISCOVERY_REQUEST.encode({
      // An empty version makes the server send everything again.
      versionInfo: this.#isAsked ? "" : this.#accepted ?? "",
      node: { id, cluster: "", metadata: Object.fromEntries(metadata) },
      resourceNames: [],
      typeUrl: RATE_LIMIT_CONFIG_URL,
      responseNonce: this.#nonce,
      errorDetail: refusal === undefined ? undefined : { code: INVALID_ARGUMENT, message: refusal },
    }));
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
export function refusalText(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === "error");
  const lines = errors.slice(0, MAX_PROBLEMS).map(problemText);
  const more = errors.length - lines.length;
  if (more > 0) lines.push(`and ${more} more`);
  const text = lines.join("\n");
  // Half of a surrogate pair is not UTF-8.
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH).toWellFormed()}…` : text;
}

import type { Counted } from "../../ratelimit/algorithms/taken.ts";
import type { Caller, CountReceiver } from "../../ratelimit/decision/counter_cache.ts";
import type { Code, DescriptorStatus } from "../../ratelimit/decision.ts";
import { RepeatedList, type RepeatedRequest } from "../../ratelimit/decision/repeated_request.ts";
import type { RateLimitRequest } from "../../ratelimit/request.ts";
import type { Rules } from "../../ratelimit/rules/rules.ts";
import type { RateLimitService } from "../../ratelimit/decision/service.ts";
import type { ResponseForm } from "../../wire/response_form.ts";
import { CODE_NUMBERS, encodeDecision, pendingResponse, responseBytes, ResponseForms } from "../responses.ts";
import type { DirectResponse, PendingResponse } from "../grpc_service.ts";
import { KnownTable } from "./known_table.ts";

/** Decides requests that are planned already. */
type RepeatingService = Pick<
  RateLimitService,
  | "isImmediate"
  | "nowSeconds"
  | "rules"
  | "repeated"
  | "takeRepeated"
  | "decideRepeated"
  | "recoverRepeated"
  | "decideList"
  | "overallCode"
>;

/** A request with one descriptor, and the form of its responses. */
type KnownRequest = RepeatedRequest<ResponseForm>;

/** Options of `KnownRequests`. */
interface KnownRequestsOptions {
  readonly service: RepeatingService;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** True while the current call is to be decided in the usual way, such as a traced one. */
  readonly isExcluded?: () => boolean;
}

/** Recognizes requests by their bytes, and decides them without reading them again. */
export class KnownRequests {
  readonly #options: KnownRequestsOptions;
  readonly #service: RepeatingService;
  readonly #forms = new ResponseForms();
  /** Created after the first request. */
  #table: KnownTable<KnownRequest | RepeatedList> | undefined;
  readonly #response = new KnownResponse();
  readonly #count = new ImmediateCount();
  /** The rules of the table. */
  #rules: Rules | undefined;
  /** The time of the last lookup. */
  #nowSeconds = 0;
  /** True if the last lookup was of `direct`, which has left the request to `respond`. */
  #isLeft = false;

  constructor(options: KnownRequestsOptions) {
    this.#options = options;
    this.#service = options.service;
  }

  /** True if `respond` decides known requests; otherwise `handle` does, as their counts come later. */
  get isImmediate(): boolean {
    return this.#service.isImmediate;
  }

  /**
   * Decides the request between two positions if it is known; otherwise `respond` gets it next. The response is valid until
   * the next call.
   */
  direct(bytes: Uint8Array, start: number, end: number): DirectResponse | undefined {
    const response = this.#respond(bytes, start, end);
    this.#isLeft = response === undefined;
    return response;
  }

  /** Decides a request if it is known, and not looked up already. The response is valid until the next call. */
  respond(bytes: Uint8Array): DirectResponse | undefined {
    if (!this.#isLeft) return this.#respond(bytes, 0, bytes.length);
    this.#isLeft = false;
    return undefined;
  }

  #respond(bytes: Uint8Array, start: number, end: number): DirectResponse | undefined {
    const known = this.#find(bytes, start, end);
    if (known === undefined) return undefined;
    if (known instanceof RepeatedList) {
      const decision = this.#service.decideList(known, NO_CALLER);
      if (decision instanceof Promise) throw new TypeError("A cache answers later");
      return new EncodedResponse(encodeDecision(decision));
    }
    this.#service.takeRepeated(known, NO_CALLER, this.#count);
    const status = this.#service.decideRepeated(known, this.#count.taken, this.#nowSeconds);
    return this.#response.of(known.formOf(status), status, this.#service.overallCode(status));
  }

  /** The response to a request that is known, by a count that comes later. */
  handle(
    bytes: Uint8Array,
    caller: Caller,
    refusal: (error: unknown) => unknown,
  ): PendingResponse | undefined {
    const known = this.#find(bytes, 0, bytes.length);
    if (known === undefined) return undefined;
    if (known instanceof RepeatedList) {
      return pendingResponse(Promise.resolve(this.#service.decideList(known, caller)), refusal);
    }
    const call = new KnownCall(this.#service, known, { caller, refusal });
    this.#service.takeRepeated(known, caller, call);
    return call;
  }

  /** Remembers the request of the last lookup, in the same turn, after it was decided otherwise. */
  learn(bytes: Uint8Array, request: RateLimitRequest): void {
    if (this.#options.isExcluded?.() === true) return;
    const table = this.#table ??= new KnownTable<KnownRequest | RepeatedList>(this.#options.random);
    if (!table.isAdmitted) return;
    const known = this.#service.repeated(request, (response) => this.#forms.of(response));
    if (known !== undefined) table.put(bytes, known);
  }

  #find(bytes: Uint8Array, start: number, end: number): KnownRequest | RepeatedList | undefined {
    if (this.#options.isExcluded?.() === true) return undefined;
    const { rules } = this.#service;
    if (rules !== this.#rules) {
      this.#table?.drop();
      this.#rules = rules;
    }
    const table = this.#table;
    const known = table?.find(bytes, start, end);
    if (table === undefined || known === undefined) return undefined;
    this.#nowSeconds = this.#service.nowSeconds();
    if (!known.isCurrent(this.#nowSeconds)) return undefined;
    table.use();
    return known;
  }
}

const NO_CALLER: Caller = { cancelled: false };

/** Keeps a count that is known before `takeRepeated` returns. */
class ImmediateCount implements CountReceiver {
  taken: Counted = 0;

  counted(count: Counted): void {
    this.taken = count;
  }

  failed(error: unknown): void {
    throw error;
  }
}

/** A response that is encoded already. */
class EncodedResponse implements DirectResponse {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get maxBytes(): number {
    return this.#bytes.length;
  }

  write(into: Uint8Array, at: number): number {
    into.set(this.#bytes, at);
    return at + this.#bytes.length;
  }
}

/** The response to a known request; reused by the next one. */
class KnownResponse implements DirectResponse {
  #form: ResponseForm | undefined;
  #status: DescriptorStatus | undefined;
  #overallCode: Code = "OK";

  of(form: ResponseForm, status: DescriptorStatus, overallCode: Code): this {
    this.#overallCode = overallCode;
    this.#form = form;
    this.#status = status;
    return this;
  }

  get maxBytes(): number {
    return this.#form?.maxBytes ?? 0;
  }

  write(into: Uint8Array, at: number): number {
    if (this.#form === undefined || this.#status === undefined) return at;
    const { code, limitRemaining, secondsUntilReset = 0 } = this.#status;
    const overall = CODE_NUMBERS[this.#overallCode];
    return this.#form.write(into, at, overall, CODE_NUMBERS[code], limitRemaining, secondsUntilReset);
  }
}
const RESPONSE = new KnownResponse();

/** A known request that waits for its count. */
class KnownCall implements CountReceiver, PendingResponse {
  readonly #service: RepeatingService;
  readonly #known: KnownRequest;
  readonly #caller: Caller;
  readonly #refusal: (error: unknown) => unknown;
  #message: Uint8Array | undefined;
  #error: unknown;
  #isFailed = false;
  #done: ((message: Uint8Array) => void) | undefined;
  #failed: ((error: unknown) => void) | undefined;

  constructor(
    service: RepeatingService,
    known: KnownRequest,
    { caller, refusal }: { readonly caller: Caller; readonly refusal: (error: unknown) => unknown },
  ) {
    this.#service = service;
    this.#known = known;
    this.#caller = caller;
    this.#refusal = refusal;
  }

  counted(count: Counted): void {
    this.#respond(this.#service.decideRepeated(this.#known, count, this.#service.nowSeconds()));
  }

  failed(error: unknown): void {
    this.#service.recoverRepeated(this.#known, error, this.#caller).then(
      (status) => this.#respond(status),
      (failure: unknown) => this.#refuse(failure),
    );
  }

  then(done: (message: Uint8Array) => void, failed: (error: unknown) => void): void {
    if (this.#message !== undefined) done(this.#message);
    else if (this.#isFailed) failed(this.#error);
    this.#done = done;
    this.#failed = failed;
  }

  #respond(status: DescriptorStatus): void {
    this.#message = responseBytes(
      RESPONSE.of(this.#known.formOf(status), status, this.#service.overallCode(status)),
    );
    this.#done?.(this.#message);
  }

  #refuse(error: unknown): void {
    this.#isFailed = true;
    this.#error = this.#refusal(error);
    this.#failed?.(this.#error);
  }
}

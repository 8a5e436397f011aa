import type { Entry } from "../ratelimit/request.ts";

/** One bucket in a report. */
export interface BucketUsage {
  /** The bytes of its `BucketId` message as latin1 text. */
  readonly id: string;
  /** Parses the bytes; undefined if they are not valid. */
  pairs(): readonly Entry[] | undefined;
  /** Requests since the last report. */
  readonly allowed: number;
  readonly denied: number;
  /** Whole seconds since the last report; 0 for the first one. */
  readonly elapsedSeconds: number;
}

/** One message of a client. */
export interface QuotaReport {
  /** Empty to use that of an earlier message of the stream. */
  readonly domain: string;
  readonly usages: Iterable<BucketUsage>;
  /** By the `now` of its stream; when absent, it is taken as it arrives. */
  readonly arrivedAt?: number | undefined;
}

/** A quota of a bucket, for this number of seconds from its arrival, or the order to forget the bucket. */
export type Assignment =
  | { readonly kind: "allow" | "deny"; readonly seconds: number }
  | TokenAssignment
  | { readonly kind: "abandon" };

/** A token bucket. */
export interface TokenAssignment {
  readonly kind: "tokens";
  readonly maxTokens: number;
  /** Tokens of one fill interval. */
  readonly tokens: number;
  readonly fillSeconds: number;
  /** Differs for each number of seconds, because Envoy compares only the nanoseconds. */
  readonly fillNanos: number;
  readonly seconds: number;
}

/** Sends to one client, in order. Methods neither wait nor throw. */
export interface QuotaActions {
  /** Equal assignments are the same object, so that their bytes can be kept. */
  send(id: string, assignment: Assignment): void;
  /** Nothing more is sent in this turn; false if some of it waits until the client has read more, and for the next call. */
  flush(): boolean;
  /** Calls back once all that was sent has arrived, unless the stream ends before; false if that is not possible. */
  confirm(arrived: () => void): boolean;
}

/** Why a stream is ended; absent for an orderly end. */
export interface StreamRefusal {
  readonly code: "INVALID_ARGUMENT" | "RESOURCE_EXHAUSTED" | "UNAVAILABLE";
  readonly message: string;
}

/** The client of a stream. */
export interface QuotaClient {
  /** The name that it sends; undefined without one. */
  readonly name: string | undefined;
  readonly actions: QuotaActions;
  /** Ends the stream; `end` of the stream need not be called after that. */
  end(refusal?: StreamRefusal): void;
}

/** A stream of reports. */
export interface QuotaStream {
  /** The time of the hub, in milliseconds. */
  now(): number;
  /** Settles when the next report may be read. Never rejects. */
  report(report: QuotaReport): Promise<void>;
  /** The client has gone; may be called twice. */
  end(): void;
}

/** Opens streams. */
export interface QuotaStreams {
  open(client: QuotaClient): QuotaStream;
}

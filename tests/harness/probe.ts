import {
  type BidiMethod,
  type DirectResponse,
  GrpcError,
  type GrpcMethod,
  type GrpcService,
  type UnaryMethod,
} from "../../src/grpc/grpc_service.ts";

/** `Echo` answers longer requests by its handler. */
const MAX_DIRECT_BYTES = 100;

const encoder = new TextEncoder();
const text = (message: Uint8Array): string => new TextDecoder().decode(message);

/** The path of a method of the probe. */
export function probePath(method: string): string {
  return `/test.Probe/${method}`;
}

/** A service of the tests, whose methods do what frames and bounds need to be seen by. */
export class Probe {
  /** Requests that `Hold` has and has not answered. */
  readonly held: ((answer: string) => void)[] = [];
  /** Streams of `Watch` that are open; each by what sends on it. */
  readonly watchers = new Set<(message: Uint8Array) => void>();
  /** Number of requests that came to a unary method. */
  calls = 0;
  directCalls = 0;
  /** Durations of ended calls of `Echo`, in milliseconds. */
  readonly ended: number[] = [];

  readonly #isDirect: boolean;

  /** `direct: false` answers every request by its handler. */
  constructor({ direct = true }: { readonly direct?: boolean } = {}) {
    this.#isDirect = direct;
  }

  readonly service: GrpcService = {
    name: "test.Probe",
    methods: [
      {
        ...this.#unary("Echo", (request) => request),
        metrics: { started: () => {}, ended: (ms) => void this.ended.push(ms) },
        direct: (bytes, start, end) => this.#echo(bytes.subarray(start, end)),
      },
      this.#unary("Size", (request) => encoder.encode(String(request.length))),
      this.#unary("Zeros", (request) => new Uint8Array(Number(text(request)))),
      this.#unary("Hold", () => {
        return new Promise((resolve) => this.held.push((answer) => resolve(encoder.encode(answer))));
      }),
      this.#unary("Refuse", (request) => {
        throw new GrpcError("INVALID_ARGUMENT", text(request));
      }),
      this.#unary("Break", () => {
        throw new TypeError("secret detail");
      }),
      {
        kind: "server_streaming",
        name: "Watch",
        open: (request, send) => {
          this.watchers.add(send);
          send(request);
          return () => void this.watchers.delete(send);
        },
      },
      this.#bidi("Chat", (request) => encoder.encode(text(request).toUpperCase())),
      this.#bidi("Zeroes", (request) => new Uint8Array(Number(text(request)))),
    ],
  };

  /** Its methods by their path. */
  get methods(): ReadonlyMap<string, GrpcMethod> {
    return new Map(this.service.methods.map((method) => [probePath(method.name), method]));
  }

  #echo(request: Uint8Array): DirectResponse | undefined {
    if (!this.#isDirect || request.length > MAX_DIRECT_BYTES) return undefined;
    this.calls++;
    this.directCalls++;
    const write = (into: Uint8Array, at: number) => {
      into.set(request, at);
      return at + request.length;
    };
    return { maxBytes: request.length, write };
  }

  #unary(name: string, handle: (request: Uint8Array) => Uint8Array | Promise<Uint8Array>): UnaryMethod {
    return {
      kind: "unary",
      name,
      handle: (request) => {
        this.calls++;
        return handle(request);
      },
    };
  }

  #bidi(name: string, answer: (request: Uint8Array) => Uint8Array): BidiMethod {
    return { kind: "bidi", name, open: (peer) => ({ receive: (request) => peer.send(answer(request)) }) };
  }
}

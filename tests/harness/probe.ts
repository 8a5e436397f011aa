import { GrpcError, type GrpcMethod, type GrpcService } from "../../src/grpc/grpc_service.ts";

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
  /** How many requests came to a unary method. */
  calls = 0;

  readonly service: GrpcService = {
    name: "test.Probe",
    methods: [
      this.#unary("Echo", (request) => request),
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
      { kind: "bidi", name: "Chat", handle: (request) => encoder.encode(text(request).toUpperCase()) },
      { kind: "bidi", name: "Zeroes", handle: (request) => new Uint8Array(Number(text(request))) },
    ],
  };

  /** Its methods by their path. */
  get methods(): ReadonlyMap<string, GrpcMethod> {
    return new Map(this.service.methods.map((method) => [probePath(method.name), method]));
  }

  #unary(name: string, handle: (request: Uint8Array) => Uint8Array | Promise<Uint8Array>): GrpcMethod {
    return {
      kind: "unary",
      name,
      handle: (request) => {
        this.calls++;
        return handle(request);
      },
    };
  }
}

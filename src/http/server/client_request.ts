/** The parts of a `ClientRequest` in addition to those of a `Request`. */
export interface ClientRequestInit extends RequestInit {
  /** Names of headers, in lower case, that were sent several times with different values. */
  readonly repeated: ReadonlySet<string>;
}

/** A request with a lazy signal, because creating one takes time and most handlers need none. */
export class ClientRequest extends Request {
  readonly repeated: ReadonlySet<string>;
  #gone: AbortController | undefined;
  #hasLeft = false;

  constructor(url: string, init: ClientRequestInit) {
    super(url, init);
    this.repeated = init.repeated;
  }

  override get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#hasLeft) this.#gone.abort();
    return this.#gone.signal;
  }

  leave(): void {
    this.#hasLeft = true;
    this.#gone?.abort();
  }
}

/** The value of a header that may occur once; none where it was sent with different values. */
interface SingleHeader {
  readonly value: string | undefined;
  readonly isRepeated: boolean;
}

/** Reads a header that may occur once; equal values count as one. */
export function singleHeader(request: Request, name: string): SingleHeader {
  const isRepeated = repeatedHeaders(request).includes(name);
  return { value: isRepeated ? undefined : request.headers.get(name) ?? undefined, isRepeated };
}

/** The headers that were sent several times with different values. */
export function repeatedHeaders(request: Request): readonly string[] {
  return request instanceof ClientRequest ? [...request.repeated] : [];
}

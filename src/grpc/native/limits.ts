/** A frame costs 1, and 1 more for each 4 KiB of its payload. */
export const FRAME_UNIT_BITS = 12;
/** The cost of HEADERS, which are decoded, and answered even when they are not a request. */
export const HEADERS_COST = 4;

/** The limits of a connection. */
export const LIMITS = {
  /** Concurrent streams: as many as Envoy opens before it knows a limit, since a refused one is a call that fails. */
  streams: 1_024,
  /**
   * Size of the decoded fields of a header block, each plus 32 bytes. Above what a block without references to the
   * dynamic table decodes to.
   */
  headerListBytes: 16_777_216,
  /** Size of an encoded header block. */
  blockBytes: 1_048_576,
  /** Blocks above this size are logged. */
  usualBlockBytes: 16_384,
  /** Maximum number of bytes of a name or value that are kept. */
  headerTextBytes: 1_024,
  /** CONTINUATION frames of a block, and one more for so many bytes of it. */
  continuations: 256,
  bytesPerContinuation: 64,
  /** Flow control windows for received DATA. */
  connectionWindow: 4_194_304,
  streamWindow: 262_144,
  /** Bytes of incomplete messages over all streams. */
  heldBytes: 16_777_216,
  /** Bytes that wait for the peer's flow control windows. */
  queuedStreamBytes: 1_048_576,
  queuedBytes: 16_777_216,
  /**
   * Frames of every type by their cost. A request earns the cost of its frames and those that clients send with it, so
   * that the number and size of calls is not limited.
   */
  frames: { burst: 20_000, perSecond: 10_000, perRequest: 16 },
  /** Frames that ask for nothing: SETTINGS, PRIORITY, GOAWAY, unknown ones, empty DATA. */
  noise: { burst: 1_000, perSecond: 100 },
  /** PING frames; DATA earns some, because clients measure bandwidth by a PING per response. */
  pings: { burst: 1_000, perSecond: 100, perData: 2 },
  /**
   * Streams reset by the peer or because of it. A call that is over earns one: a proxy resets the calls of its clients
   * that disconnect, as many as they like. So this limits those that never became a call, or still run.
   */
  resets: { burst: 2_000, perSecond: 1_000, perCall: 1 },
  /** Ids kept to tell late frames from wrong ones. */
  remembered: 1_000,
  /** Time to complete a request. */
  requestMs: 60_000,
  /** Time to prove that the peer speaks HTTP/2. */
  handshakeMs: 10_000,
  /** Silence before a keepalive PING, and the timeout of its answer. */
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  /** Bytes that wait for a peer that does not read, before nothing more is read from it. */
  unsentBytes: 1_048_576,
  /** Time that a peer may leave output unread. */
  unsentMs: 30_000,
} as const;

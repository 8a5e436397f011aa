/** A frame costs one, and one more for each 4 KiB of its payload. */
export const FRAME_UNIT_BITS = 12;
/** HEADERS cost more in place of the one: each is decoded, and answered even when it is no request. */
export const HEADERS_COST = 4;

/** Every bound of a connection. All that can grow has one. */
export const LIMITS = {
  /** Streams at a time. */
  streams: 1_000,
  /** What a block of headers may unfold to, each field counted with 32 octets more. */
  headerListBytes: 16_384,
  /** What a block of headers may have in its frames. */
  blockBytes: 32_768,
  /** CONTINUATION frames of one block. */
  continuations: 16,
  /** Octets that a peer may send before we let in more: on the connection, and on one stream. */
  connectionWindow: 4_194_304,
  streamWindow: 262_144,
  /** Octets kept of messages that are not whole, over all streams. */
  heldBytes: 16_777_216,
  /** Octets that wait for a peer to let them in: on one stream, and over all streams. */
  queuedStreamBytes: 1_048_576,
  queuedBytes: 16_777_216,
  /**
   * Frames of every type, by their cost. A request that reaches its method earns the cost of its own frames
   * and of those that clients send around it, such as WINDOW_UPDATE.
   */
  frames: { burst: 20_000, perSecond: 10_000, perRequest: 16 },
  /** Frames that ask for nothing: SETTINGS, PRIORITY, GOAWAY, unknown ones, empty DATA. */
  noise: { burst: 1_000, perSecond: 100 },
  /** PING frames. DATA allows some more, because clients measure the line by a PING for each answer. */
  pings: { burst: 1_000, perSecond: 100, perData: 2 },
  /** Streams that are reset, by the peer or because of it. */
  resets: { burst: 2_000, perSecond: 1_000 },
  /** Streams and ranges of streams that are remembered to tell late frames from wrong ones. */
  remembered: 1_000,
  /** How long a request may take to come to its end. */
  requestMs: 60_000,
  /** How long a peer may take to show that it speaks HTTP/2. */
  handshakeMs: 10_000,
  /** Silence after which a peer is asked for a sign of life, and how long it may take to give it. */
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  /** Octets that wait to be written to a peer that does not read, before nothing more is read from it. */
  unsentBytes: 1_048_576,
  /** How long such a peer may take to read. */
  unsentMs: 30_000,
} as const;

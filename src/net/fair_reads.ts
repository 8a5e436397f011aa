import { setImmediate, setTimeout } from "node:timers";

/** A turn of the event loop that serves this many sockets leaves others waiting: see `FairReads`. */
const FULL_TURN = 100;
/** Timer turns in a row without a full one that end a round. One is not enough: timers run before the sockets of a turn. */
const QUIET_TURNS = 4;
/** Part of the sockets of the last round after which the next one may end: the others are first in the round after it. */
const EXPECTED_SHARE = 7 / 8;
/** Growth of a round that is no change of the load. */
const STEADY_GROWTH = 1.125;
/** Most rounds that end by the expected size before one waits for the sockets that the size does not know. */
const MOST_UNCHECKED = 64;

/** Starts the next read of a stream that was served. */
type Read = () => void;

/**
 * Serves many busy sockets in rounds. A turn of the event loop completes at most 128 operations (the budget of tokio),
 * and the sockets beyond it wait behind all that are ready again by the next turn: the same 128 would be served turn after
 * turn. So after a full turn, the served sockets read again only when the others have been served: when all sockets that
 * read, or about as many as in the last round, were served, or when no turn has been full for some milliseconds.
 */
export class FairReads {
  /** Streams with a read that is pending or held. */
  #reading = 0;
  /** Next reads of the current turn, and of earlier turns of the round. */
  #served: Read[] = [];
  #held: Read[] = [];
  readonly #size = new RoundSize();
  /** Timer turns since the last full turn; undefined while no timer runs. */
  #quietTurns: number | undefined;

  /** A stream begins to read. */
  begin(): void {
    this.#reading++;
  }

  /** A stream stops reading, or is closed. */
  end(): void {
    this.#reading--;
  }

  /** Calls `read` immediately if few streams read, and else in the next round. */
  next(read: Read): void {
    if (this.#reading <= FULL_TURN && this.#held.length === 0) return read();
    if (this.#served.push(read) === 1) setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    const served = this.#served;
    this.#served = [];
    const isFull = served.length >= FULL_TURN;
    if (!isFull && this.#held.length === 0) return readAll(served);
    for (const read of served) this.#held.push(read);
    const { length } = this.#held;
    if (length >= this.#reading || this.#size.isReached(length)) return this.#endRound();
    if (this.#quietTurns === undefined) setTimeout(this.#onTimer, 0);
    if (isFull || this.#quietTurns === undefined) this.#quietTurns = 0;
  };

  readonly #onTimer = (): void => {
    if (this.#quietTurns === undefined) return;
    if (this.#held.length > 0 && ++this.#quietTurns < QUIET_TURNS) return void setTimeout(this.#onTimer, 0);
    this.#quietTurns = undefined;
    if (this.#held.length > 0) this.#size.learn(this.#held.length);
    this.#endRound();
  };

  #endRound(): void {
    const held = this.#held;
    this.#held = [];
    readAll(held);
  }
}

/** The number of sockets that a round is expected to serve. */
class RoundSize {
  #expected = Infinity;
  /** Rounds in a row that ended by the expected size, and the most of them. */
  #unchecked = 0;
  #mostUnchecked = 1;

  /** True if a round of this size may end without waiting for others. */
  isReached(size: number): boolean {
    return size >= this.#expected && this.#unchecked++ < this.#mostUnchecked;
  }

  /** Notes the size of a round that waited for all: the longer the load is steady, the fewer rounds wait. */
  learn(size: number): void {
    const isSteady = size >= this.#expected && size * EXPECTED_SHARE <= this.#expected * STEADY_GROWTH;
    this.#mostUnchecked = isSteady ? Math.min(this.#mostUnchecked * 2, MOST_UNCHECKED) : 1;
    this.#unchecked = 0;
    this.#expected = Math.floor(size * EXPECTED_SHARE);
  }
}

function readAll(reads: readonly Read[]): void {
  for (const read of reads) read();
}

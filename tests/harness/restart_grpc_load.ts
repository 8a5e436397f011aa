import type { CallLog } from "./call_log.ts";
import { decide, GrpcClient } from "./grpc_client.ts";

/** Calls in flight on each channel. */
const CALLS_AT_ONCE = 3;
/** Pause of a caller after each answer, so that the load leaves the machine room to start processes. */
const PAUSE_MS = 5;

/** No call was sent: the kernel resets what waits in the queue of a listener that closes. */
const NOT_ACCEPTED = /^No connection established\. Last error: read ECONNRESET/;

/** Callers by grpc-js, which sends again by itself what a server says it has not begun. */
export class RestartGrpcLoad implements AsyncDisposable {
  readonly #log: CallLog;
  readonly #callers: Promise<void>;
  #going = true;

  constructor(address: string, log: CallLog, channels: number) {
    this.#log = log;
    this.#callers = Promise.all(Array.from({ length: channels }, () => this.#keep(address))).then(() => {});
  }

  /** Ends the load; every call that was begun is counted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#going = false;
    await this.#callers;
  }

  async #keep(address: string): Promise<void> {
    // Of its own, or all channels would share one connection.
    using client = new GrpcClient(address, { "grpc.use_local_subchannel_pool": 1 });
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => this.#ask(client)));
  }

  async #ask(client: GrpcClient): Promise<void> {
    while (this.#going) {
      const answer = await decide(client, "shop", "user=bob");
      if ("overallCode" in answer) this.#log.answered++;
      else if (NOT_ACCEPTED.test(answer.details)) this.#log.resets++;
      else this.#log.failures.push(`status ${answer.code}: ${answer.details}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

import { joined } from "./frame_reader.ts";
import type { HeaderField } from "../../src/grpc/native/hpack_decoder.ts";
import { type OverallCode, readOverallCode, unframeMessage } from "./rate_limit_message.ts";

/** What a right answer holds: the request's own bytes, or a response with this overall code. */
export type Expectation = "echo" | OverallCode;

/** What came back on one stream. */
export class Answer {
  #httpStatus = "none";
  #grpcStatus = "none";
  #grpcMessage = "";
  #contentType = "none";
  #body: Uint8Array | undefined;

  /** Takes the fields of the headers or of the trailers. */
  takeFields(fields: readonly HeaderField[]): void {
    for (const [name, value] of fields) {
      if (name === ":status") this.#httpStatus = value;
      else if (name === "grpc-status") this.#grpcStatus = value;
      else if (name === "grpc-message") this.#grpcMessage = value;
      else if (name === "content-type") this.#contentType = value;
    }
  }

  /** Takes a part of the body; the part is copied. */
  takeBody(part: Uint8Array): void {
    this.#body = this.#body === undefined ? part.slice() : joined(this.#body, part);
  }

  /** The statuses in short, to count answers by. */
  get statuses(): string {
    return `http ${this.#httpStatus}, grpc ${this.#grpcStatus}`;
  }

  /** What is wrong with the answer, or nothing. `request` is the message that was sent. */
  problem(expected: Expectation, request: Uint8Array): string | undefined {
    if (this.#httpStatus !== "200" || this.#grpcStatus !== "0") {
      return [this.statuses, this.#grpcMessage].filter((part) => part !== "").join(": ");
    }
    if (!this.#contentType.startsWith("application/grpc")) return `content-type ${this.#contentType}`;
    try {
      const message = unframeMessage(this.#body ?? new Uint8Array(0));
      if (expected === "echo") return isSame(message, request) ? undefined : "the answer is not the request";
      const code = readOverallCode(message);
      return code === expected ? undefined : `overall code ${code} instead of ${expected}`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}

function isSame(first: Uint8Array, second: Uint8Array): boolean {
  return first.length === second.length && first.every((byte, index) => byte === second[index]);
}

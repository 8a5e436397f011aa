import { Client, credentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { RATE_LIMIT_PATH } from "../../src/load/rate_limit_message.ts";

/** One call by a real grpc-js client: the bytes of the answer, or an error for every status but OK. */
export function singleCall(port: number, message: Uint8Array): Promise<Uint8Array> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  client.makeUnaryRequest(
    RATE_LIMIT_PATH,
    (bytes: Uint8Array) => Buffer.from(bytes),
    (bytes: Uint8Array) => new Uint8Array(bytes),
    message,
    { deadline: Date.now() + 5_000 },
    (error, answer) =>
      answer === undefined ? reject(error ?? new Error("Cannot call: no answer")) : resolve(answer),
  );
  return promise.finally(() => client.close());
}

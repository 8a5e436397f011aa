import { assertEquals } from "#assert";
import { isSocketError } from "../../../src/telemetry/process_guard.ts";

const ERRORS: readonly [error: unknown, socket: boolean][] = [
  [Object.assign(new Error("write EPIPE"), { code: "EPIPE" }), true],
  [Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }), true],
  [new Error("The stream has been destroyed"), true],
  [new TypeError("undefined is not a function"), false],
  ["a text", false],
];

for (const [error, socket] of ERRORS) {
  Deno.test(`process guard: ${String(error)} is ${socket ? "a socket's" : "unexpected"}`, () => {
    assertEquals(isSocketError(error), socket);
  });
}

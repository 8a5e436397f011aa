/**
 * Loaded before each unit test file: what would make its outcome depend on the machine throws. Time is a `FakeClock`,
 * events come from the test, and `setImmediate` and `queueMicrotask` take turns.
 */

const REFUSED: readonly (readonly [owner: object, name: string, members: readonly string[]])[] = [
  [globalThis, "", ["setTimeout", "setInterval", "Worker", "fetch", "WebSocket", "EventSource"]],
  [AbortSignal, "AbortSignal.", ["timeout"]],
  [Deno, "Deno.", [
    "Command",
    "connect",
    "connectTls",
    "kill",
    "listen",
    "listenDatagram",
    "listenTls",
    "serve",
    "watchFs",
  ]],
];

for (const [owner, prefix, members] of REFUSED) {
  for (const member of members) {
    const refused = function (): never {
      throw new Error(`A unit test must not use ${prefix}${member}: move the test to tests/integration`);
    };
    Object.defineProperty(owner, member, { value: refused, configurable: true, writable: true });
  }
}
// `until` then waits by turns.
Object.defineProperty(globalThis, Symbol.for("weir.unit_guard"), { value: true });

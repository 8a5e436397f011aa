import { assertEquals } from "#assert";
import { parseRedirect, parseSlotRanges } from "../../../../../src/cache/kv/cluster/slots.ts";

const HERE = { host: "10.0.0.1", port: 7000 };

const RANGES: Readonly<Record<string, { reply: unknown; ranges: unknown[] }>> = {
  "primaries alone, whatever replicas there are": {
    reply: [
      [0, 5460, ["10.0.0.2", 7001, "id", []], ["10.0.0.3", 7002, "id", []]],
      [5461, 16_383, ["10.0.0.3", 7003, "id"]],
    ],
    ranges: [
      { from: 0, to: 5460, endpoint: { host: "10.0.0.2", port: 7001 } },
      { from: 5461, to: 16_383, endpoint: { host: "10.0.0.3", port: 7003 } },
    ],
  },
  "a single slot, an IPv6 address and a host name": {
    reply: [[7, 7, ["::1", 7001, "id"]], [8, 9, ["kv-0.example", 7002, "id", ["ip", "10.0.0.9"]]]],
    ranges: [
      { from: 7, to: 7, endpoint: { host: "::1", port: 7001 } },
      { from: 8, to: 9, endpoint: { host: "kv-0.example", port: 7002 } },
    ],
  },
  "a node without its own name is where the answer came from": {
    reply: [[0, 1, ["", 7001]], [2, 3, [null, 7002]], [4, 5, ["?", 7003, "id", []]]],
    ranges: [
      { from: 0, to: 1, endpoint: { host: "10.0.0.1", port: 7001 } },
      { from: 2, to: 3, endpoint: { host: "10.0.0.1", port: 7002 } },
      { from: 4, to: 5, endpoint: { host: "10.0.0.1", port: 7003 } },
    ],
  },
  "a host name that is not known makes way for the address next to it": {
    reply: [[0, 1, ["?", 7001, "id", ["ip", "10.0.0.9"]]]],
    ranges: [{ from: 0, to: 1, endpoint: { host: "10.0.0.9", port: 7001 } }],
  },
  "what cannot be read is left out": {
    reply: [
      [0, 16_384, ["h", 1]],
      [-1, 5, ["h", 1]],
      [5, 4, ["h", 1]],
      ["0", 5, ["h", 1]],
      [0.5, 5, ["h", 1]],
      [0, 5, ["h", 0]],
      [0, 5, ["h", 65_536]],
      [0, 5, [{}, 1]],
      [0, 5, "h"],
      [0, 5],
      "text",
      null,
      [3, 4, ["h", 1]],
    ],
    ranges: [{ from: 3, to: 4, endpoint: { host: "h", port: 1 } }],
  },
  "a text": { reply: "OK", ranges: [] },
  "nothing": { reply: null, ranges: [] },
  "a node without a cluster": { reply: [], ranges: [] },
};

for (const [name, { reply, ranges }] of Object.entries(RANGES)) {
  Deno.test(`kv slots: the answer of a node: ${name}`, () => {
    assertEquals<unknown>(parseSlotRanges(reply, HERE), ranges);
  });
}

Deno.test("kv slots: where a node sends a command", () => {
  const redirects: Readonly<Record<string, unknown>> = {
    "MOVED 3999 127.0.0.1:6381": { kind: "MOVED", slot: 3999, endpoint: { host: "127.0.0.1", port: 6381 } },
    "ASK 0 kv-0.example:1": { kind: "ASK", slot: 0, endpoint: { host: "kv-0.example", port: 1 } },
    "MOVED 16383 ::1:6381": { kind: "MOVED", slot: 16_383, endpoint: { host: "::1", port: 6381 } },
    "MOVED 1 [::1]:6381": { kind: "MOVED", slot: 1, endpoint: { host: "::1", port: 6381 } },
    "MOVED 1 :6381": { kind: "MOVED", slot: 1, endpoint: { host: "10.0.0.1", port: 6381 } },
    "ASK 1 ?:6381": { kind: "ASK", slot: 1, endpoint: { host: "10.0.0.1", port: 6381 } },
    "MOVED 16384 h:6381": undefined,
    "MOVED 1 h:0": undefined,
    "MOVED 1 h:65536": undefined,
    "MOVED 1 h": undefined,
    "MOVED h:1": undefined,
    "MOVED": undefined,
    "TRYAGAIN Multiple keys request during rehashing of slot": undefined,
    "no answer within 5 ms": undefined,
  };
  for (const [text, redirect] of Object.entries(redirects)) {
    assertEquals<unknown>([text, parseRedirect(text, HERE)], [text, redirect]);
  }
});

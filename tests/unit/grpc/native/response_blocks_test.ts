import { assertEquals } from "#assert";
import {
  OK_TRAILERS,
  percentEncode,
  plainHeaders,
  RESPONSE_HEADERS,
  trailers,
  trailersOnly,
} from "../../../../src/grpc/native/response_blocks.ts";
import { type HeaderField, HpackDecoder } from "../../../../src/grpc/native/hpack_decoder.ts";

const STATUS: HeaderField = [":status", "200"];
const TYPE: HeaderField = ["content-type", "application/grpc"];

const BLOCKS: readonly (readonly [name: string, block: Uint8Array, fields: readonly HeaderField[]])[] = [
  ["headers", RESPONSE_HEADERS, [STATUS, TYPE]],
  ["trailers of a good call", OK_TRAILERS, [["grpc-status", "0"]]],
  ["trailers without a message", trailers("OK", ""), [["grpc-status", "0"]]],
  ["trailers", trailers("UNAVAILABLE", "try later"), [["grpc-status", "14"], ["grpc-message", "try later"]]],
  ["trailers only", trailersOnly("NOT_FOUND", "none"), [STATUS, TYPE, ["grpc-status", "5"], [
    "grpc-message",
    "none",
  ]]],
  ["what is not implemented names the encodings", trailersOnly("UNIMPLEMENTED", ""), [
    STATUS,
    TYPE,
    ["grpc-accept-encoding", "identity,deflate,gzip"],
    ["grpc-status", "12"],
  ]],
  ["a plain answer", plainHeaders(415, 70), [
    [":status", "415"],
    ["content-type", "text/plain; charset=utf-8"],
    ["content-length", "70"],
  ]],
];

Deno.test("header blocks: each says the same to a decoder, and changes nothing in its table", () => {
  const decoder = new HpackDecoder();
  const found = BLOCKS.map(([name, block]) => [name, decoder.decode(block).map((field) => [...field])]);
  assertEquals([found, decoder.changes], [
    BLOCKS.map(([name, , fields]) => [name, fields.map((one) => [...one])]),
    0,
  ]);
});

Deno.test("header blocks: texts of every length up to the longest message", () => {
  const lengths = [1, 126, 127, 128, 254, 255, 4_095, 4_096];
  const found = lengths.map((length) =>
    new HpackDecoder().decode(trailers("INTERNAL", "x".repeat(length)))[1]?.[1].length
  );
  assertEquals(found, lengths);
});

const MESSAGES: readonly (readonly [name: string, message: string, encoded: string])[] = [
  ["visible ASCII", "a b~!", "a b~!"],
  ["a percent sign", "50 %", "50 %25"],
  ["a line break and a tab", "a\nb\tc", "a%0Ab%09c"],
  ["two bytes", "ключ", "%D0%BA%D0%BB%D1%8E%D1%87"],
  ["four bytes", "😀", "%F0%9F%98%80"],
  ["half a character", "\ud83d!", "%EF%BF%BD!"],
  ["delete and zero", "\x7f\0", "%7F%00"],
  ["too long", "x".repeat(5_000), "x".repeat(4_096)],
  ["too long in bytes: only whole characters", "日".repeat(2_000), "%E6%97%A5".repeat(455)],
];

Deno.test("percentEncode", () => {
  const found = MESSAGES.map(([name, message]) => [name, message, percentEncode(message)]);
  assertEquals(found, MESSAGES.map((one) => [...one]));
});

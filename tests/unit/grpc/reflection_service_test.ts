import { assertEquals, assertThrows } from "#assert";
import protobuf from "protobufjs";
import { GrpcError, type GrpcService } from "../../../src/grpc/grpc_service.ts";
import { createReflectionServices } from "../../../src/grpc/reflection_service.ts";
import { FILE_DESCRIPTORS } from "../../../src/wire/descriptors.ts";
import { decodeFileDescriptor } from "../../../src/wire/file_descriptor.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";

const ROOT = loadProtoRoot();
const VERSIONS = ["v1", "v1alpha"] as const;
const OTHERS: readonly GrpcService[] = [
  { name: "grpc.health.v1.Health", methods: [] },
  { name: "envoy.service.ratelimit.v3.RateLimitService", methods: [] },
];

const RLS_FILES = [
  "envoy/service/ratelimit/v3/rls.proto",
  "envoy/config/core/v3/base.proto",
  "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
  "google/protobuf/duration.proto",
  "google/protobuf/struct.proto",
  "envoy/type/v3/ratelimit_unit.proto",
  "google/protobuf/wrappers.proto",
];

const RLS = "envoy.service.ratelimit.v3";
const UNIT = ["envoy/type/v3/ratelimit_unit.proto"];
const FOUND: readonly (readonly [name: string, question: object, files: readonly string[]])[] = [
  ["a file", { file_by_filename: RLS_FILES[0] }, RLS_FILES],
  ["a file without imports", { file_by_filename: "google/protobuf/any.proto" }, [
    "google/protobuf/any.proto",
  ]],
  ["a service", symbol(`${RLS}.RateLimitService`), RLS_FILES],
  ["a method", symbol(`${RLS}.RateLimitService.ShouldRateLimit`), RLS_FILES],
  ["a message", symbol(`${RLS}.RateLimitRequest`), RLS_FILES],
  ["a field", symbol(`${RLS}.RateLimitRequest.domain`), RLS_FILES],
  ["a nested message", symbol(`${RLS}.RateLimitResponse.RateLimit`), RLS_FILES],
  ["an enum in a nested message", symbol(`${RLS}.RateLimitResponse.RateLimit.Unit`), RLS_FILES],
  ["a value of an enum", symbol(`${RLS}.RateLimitResponse.RateLimit.WEEK`), RLS_FILES],
  ["an enum", symbol("envoy.type.v3.RateLimitUnit"), UNIT],
  ["a message of Google's", symbol("google.protobuf.UInt64Value"), ["google/protobuf/wrappers.proto"]],
  [
    "a oneof",
    symbol("grpc.reflection.v1.ServerReflectionRequest.message_request"),
    ["grpc/reflection/v1/reflection.proto"],
  ],
];

const EXTENSION = { file_containing_extension: { containing_type: "a.B", extension_number: 7 } };
const REFUSED: readonly (readonly [name: string, question: object, code: number, message: string])[] = [
  [
    "a file that is not there",
    { file_by_filename: "rls.proto" },
    5,
    'file "rls.proto": it is not known here',
  ],
  [
    "a file with the name of something that every object has",
    { file_by_filename: "constructor" },
    5,
    'file "constructor": it is not known here',
  ],
  ["a symbol that is not there", symbol(RLS), 5, `symbol "${RLS}": it is not known here`],
  ["an extension", EXTENSION, 5, 'extensions of "a.B": there are none'],
  [
    "the numbers of extensions",
    { all_extension_numbers_of_type: "a.B" },
    5,
    'extensions of "a.B": there are none',
  ],
  ["nothing", {}, 3, 'kind of question "unknown": ask for a file, symbol or list'],
];

for (const version of VERSIONS) {
  Deno.test(`reflection ${version} lists every service, and each of them resolves to its file`, () => {
    const names = [
      "envoy.service.ratelimit.v3.RateLimitService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ];
    assertEquals(ask(version, { list_services: "*" }), {
      valid_host: "h",
      list_services_response: { service: names.map((name) => ({ name })) },
    });
    for (const name of names) {
      const [first] = filesOf(ask(version, symbol(name)));
      assertEquals(decodeFileDescriptor(first ?? new Uint8Array()).symbols.includes(name), true, name);
    }
  });

  for (const [name, question, files] of FOUND) {
    Deno.test(`reflection ${version} answers ${name} with its file and all imports`, () => {
      const answered = filesOf(ask(version, question));
      assertEquals(answered.map((file) => decodeFileDescriptor(file).name), files);
      assertEquals(
        answered.map((file) => new Uint8Array(file).toBase64()),
        files.map((file) => FILE_DESCRIPTORS[file]),
      );
    });
  }

  for (const [name, question, code, message] of REFUSED) {
    Deno.test(`reflection ${version} refuses ${name}`, () => {
      const error_message = `Cannot ${code === 5 ? "find" : "answer"} ${message}`;
      assertEquals(ask(version, question), {
        valid_host: "h",
        error_response: { error_code: code, error_message },
      });
    });
  }

  Deno.test(`reflection ${version} ends the call for bytes that are no request`, () => {
    const error = assertThrows(() => bidi(version)(Uint8Array.fromHex("3a05")));
    assertEquals({ code: error instanceof GrpcError ? error.code : error.name, message: error.message }, {
      code: "INTERNAL",
      message: 'Cannot read field 7 of "ServerReflectionRequest": length 5 goes beyond the 0 bytes left',
    });
  });
}

function symbol(name: string | undefined) {
  return { file_containing_symbol: name };
}

/** The answer without the question in it, which is compared here. */
function ask(version: typeof VERSIONS[number], question: object): Readonly<Record<string, unknown>> {
  const requestCodec = ROOT.lookupType(`grpc.reflection.${version}.ServerReflectionRequest`);
  const responseCodec = ROOT.lookupType(`grpc.reflection.${version}.ServerReflectionResponse`);
  const request = { host: "h", ...question };
  const answer = bidi(version)(requestCodec.encode(requestCodec.fromObject(request)).finish());
  const { original_request, ...rest } = plain(responseCodec, answer);
  assertEquals(original_request, request);
  return rest;
}

function plain(codec: protobuf.Type, bytes: Uint8Array): Record<string, unknown> {
  return codec.toObject(codec.decode(bytes), { bytes: Array });
}

function filesOf(answer: Readonly<Record<string, unknown>>): Uint8Array[] {
  const { file_descriptor_proto } = answer["file_descriptor_response"] as {
    file_descriptor_proto: number[][];
  };
  return file_descriptor_proto.map((file) => Uint8Array.from(file));
}

function bidi(version: typeof VERSIONS[number]): (message: Uint8Array) => Uint8Array {
  const reflection = createReflectionServices(() => [...OTHERS, ...reflection]);
  const service = reflection.find(({ name }) => name === `grpc.reflection.${version}.ServerReflection`);
  const method = service?.methods[0];
  if (method?.kind !== "bidi") {
    throw new RangeError(`Cannot find reflection "${version}": it must be one method`);
  }
  return (message) => {
    const sent: Uint8Array[] = [];
    const peer = {
      send: (answer: Uint8Array) => void sent.push(answer),
      unsentBytes: 0,
      confirm: () => false,
      end: () => {},
    };
    method.open(peer, { header: () => undefined, cancelled: false }).receive(message);
    return sent[0] ?? new Uint8Array();
  };
}

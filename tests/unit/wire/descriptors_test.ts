import { assertEquals } from "@std/assert";
import protobuf from "protobufjs";
import { FILE_DESCRIPTORS } from "../../../src/wire/descriptors.ts";
import { decodeFileDescriptor } from "../../../src/wire/file_descriptor.ts";
import { loadProtoRoot, protoFileNames } from "../../harness/proto_root.ts";

/** The part of the compiler's own format that says what a file declares. */
const DESCRIPTOR_PROTO = `
  syntax = "proto3";
  message File {
    string name = 1; string package = 2; repeated string dependency = 3;
    repeated Message message_type = 4; repeated Enum enum_type = 5; repeated Service service = 6; string syntax = 12;
  }
  message Message {
    string name = 1; repeated Field field = 2; repeated Message nested_type = 3; repeated Enum enum_type = 4;
    repeated Oneof oneof_decl = 8;
  }
  message Field {
    string name = 1; int32 number = 3; int32 label = 4; int32 type = 5; string type_name = 6; int32 oneof_index = 9;
  }
  message Oneof { string name = 1; }
  message Enum { string name = 1; repeated Value value = 2; }
  message Value { string name = 1; int32 number = 2; }
  message Service { string name = 1; repeated Method method = 2; }
  message Method {
    string name = 1; string input_type = 2; string output_type = 3;
    bool client_streaming = 5; bool server_streaming = 6;
  }
`;
const FILE = protobuf.parse(DESCRIPTOR_PROTO, { keepCase: true }).root.lookupType("File");
const TYPE_NAMES: Readonly<Record<number, string>> = {
  5: "int32",
  8: "bool",
  9: "string",
  12: "bytes",
  13: "uint32",
};
const REPEATED = 3;

const GOOGLE_FILES = ["any", "duration", "struct", "wrappers"].map((name) => `google/protobuf/${name}.proto`);

interface FileText {
  readonly name: string;
  readonly package: string;
  readonly dependency: readonly string[];
  readonly message_type: readonly MessageText[];
  readonly enum_type: readonly EnumText[];
  readonly service: readonly ServiceText[];
}
interface MessageText {
  readonly name: string;
  readonly field: readonly FieldText[];
  readonly nested_type: readonly MessageText[];
  readonly enum_type: readonly EnumText[];
  readonly oneof_decl: readonly { readonly name: string }[];
}
interface FieldText {
  readonly name: string;
  readonly number: number;
  readonly label: number;
  readonly type: number;
  readonly type_name: string;
}
interface EnumText {
  readonly name: string;
  readonly value: readonly { readonly name: string; readonly number: number }[];
}
interface ServiceText {
  readonly name: string;
  readonly method: readonly {
    readonly name: string;
    readonly input_type: string;
    readonly output_type: string;
    readonly client_streaming: boolean;
    readonly server_streaming: boolean;
  }[];
}

const TEXTS = Object.entries(FILE_DESCRIPTORS).map(([name, base64]) => ({ name, text: fileText(base64) }));

Deno.test("the table holds every file in proto/ and the four that they import", () => {
  assertEquals(Object.keys(FILE_DESCRIPTORS), [...protoFileNames(), ...GOOGLE_FILES].sort());
});

Deno.test("the table declares what protobufjs reads in proto/: the script was run after the last change", () => {
  const own = TEXTS.filter(({ name }) => !GOOGLE_FILES.includes(name));
  assertEquals(own.flatMap(({ text }) => linesOfFile(text)).sort(), linesOfNamespace(loadProtoRoot()).sort());
});

for (const { name, text } of TEXTS) {
  Deno.test(`decodeFileDescriptor knows name, imports and symbols of ${name}`, () => {
    const { symbols, ...rest } = decodeFileDescriptor(Uint8Array.fromBase64(FILE_DESCRIPTORS[name] ?? ""));
    assertEquals(rest, { name, dependencies: [...text.dependency] });
    assertEquals([...symbols].sort(), symbolsOfFile(text).sort());
  });
}

function fileText(base64: string): FileText {
  const file = FILE.decode(Uint8Array.fromBase64(base64));
  return FILE.toObject(file, { defaults: true }) as FileText;
}

function linesOfFile(file: FileText): string[] {
  return [
    ...file.message_type.flatMap((message) => linesOfMessage(message, file.package)),
    ...file.enum_type.flatMap((one) => linesOfEnum(one, file.package)),
    ...file.service.flatMap(({ name, method }) =>
      method.map((one) => {
        const ways = `${one.client_streaming ? "stream " : ""}${one.server_streaming ? "stream" : ""}`;
        return `${file.package}.${name}.${one.name} ${one.input_type} ${one.output_type} ${ways}`;
      })
    ),
  ];
}

function linesOfMessage(message: MessageText, scope: string): string[] {
  const full = `${scope}.${message.name}`;
  return [
    `message ${full}`,
    ...message.field.map((field) => {
      const type = field.type_name === "" ? TYPE_NAMES[field.type] : field.type_name;
      return `${full}.${field.name} ${field.number} ${type} ${field.label === REPEATED}`;
    }),
    ...message.oneof_decl.map(({ name }) => `oneof ${full}.${name}`),
    ...message.nested_type.flatMap((inner) => linesOfMessage(inner, full)),
    ...message.enum_type.flatMap((inner) => linesOfEnum(inner, full)),
  ];
}

function linesOfEnum({ name, value }: EnumText, scope: string): string[] {
  return value.map((one) => `enum ${scope}.${name} ${one.name} ${one.number}`);
}

/** The same lines from the .proto files as protobufjs reads them, without what Google publishes. */
function linesOfNamespace(namespace: protobuf.NamespaceBase): string[] {
  return namespace.nestedArray.flatMap((one) => {
    if (one.fullName === ".google.protobuf") return [];
    if (one instanceof protobuf.Enum) {
      const scope = one.parent?.fullName.slice(1) ?? "";
      return linesOfEnum({ name: one.name, value: valuesOf(one) }, scope);
    }
    if (one instanceof protobuf.Type) return [...linesOfType(one), ...linesOfNamespace(one)];
    if (one instanceof protobuf.Service) return linesOfService(one);
    return one instanceof protobuf.Namespace ? linesOfNamespace(one) : [];
  });
}

function valuesOf(one: protobuf.Enum): EnumText["value"] {
  return Object.entries(one.values).map(([name, number]) => ({ name, number }));
}

function linesOfType(type: protobuf.Type): string[] {
  const full = type.fullName.slice(1);
  return [
    `message ${full}`,
    ...type.fieldsArray.map((field) => {
      const name = field.resolvedType === null ? field.type : field.resolvedType.fullName;
      return `${full}.${field.name} ${field.id} ${name} ${field.repeated}`;
    }),
    ...type.oneofsArray.map((oneof) => `oneof ${full}.${oneof.name}`),
  ];
}

function linesOfService(service: protobuf.Service): string[] {
  return service.methodsArray.map((method) => {
    const types = `${method.resolvedRequestType?.fullName} ${method.resolvedResponseType?.fullName}`;
    const ways = `${method.requestStream ? "stream " : ""}${method.responseStream ? "stream" : ""}`;
    return `${service.fullName.slice(1)}.${method.name} ${types} ${ways}`;
  });
}

function symbolsOfFile(file: FileText): string[] {
  return [
    ...file.message_type.flatMap((message) => symbolsOfMessage(message, file.package)),
    ...file.enum_type.flatMap((one) => symbolsOfEnum(one, file.package)),
    ...file.service.flatMap(({ name, method }) => {
      const full = `${file.package}.${name}`;
      return [full, ...method.map((one) => `${full}.${one.name}`)];
    }),
  ];
}

function symbolsOfMessage(message: MessageText, scope: string): string[] {
  const full = `${scope}.${message.name}`;
  return [
    full,
    ...[...message.field, ...message.oneof_decl].map(({ name }) => `${full}.${name}`),
    ...message.nested_type.flatMap((inner) => symbolsOfMessage(inner, full)),
    ...message.enum_type.flatMap((inner) => symbolsOfEnum(inner, full)),
  ];
}

/** The values of an enum are names beside it. */
function symbolsOfEnum({ name, value }: EnumText, scope: string): string[] {
  return [`${scope}.${name}`, ...value.map((one) => `${scope}.${one.name}`)];
}

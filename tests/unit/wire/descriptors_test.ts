import { assertEquals } from "#assert";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor/index.js";
import { FILE_DESCRIPTORS } from "../../../src/wire/descriptors.ts";
import { decodeFileDescriptor } from "../../../src/wire/file_descriptor.ts";
import { loadProtoRoot, protoFileNames } from "../../harness/proto_root.ts";

const GOOGLE_FILES = ["any", "duration", "struct", "wrappers"].map((name) => `google/protobuf/${name}.proto`);

const FILES = Object.entries(FILE_DESCRIPTORS).map(([name, base64]) => {
  const bytes = Uint8Array.fromBase64(base64);
  return { name, decoded: decodeFileDescriptor(bytes), file: descriptor.FileDescriptorProto.decode(bytes) };
});
// The types of protobufjs lack what this extension adds to its classes.
const { fromDescriptor } = protobuf.Root as unknown as { fromDescriptor(set: object): protobuf.Root };
/** The declarations of the table, as protobufjs reads them. */
const TABLE = fromDescriptor({ file: FILES.map(({ file }) => file) });

Deno.test("the table holds every file in proto/ and the four that they import", () => {
  assertEquals(Object.keys(FILE_DESCRIPTORS), [...protoFileNames(), ...GOOGLE_FILES].sort());
});

Deno.test("the table declares what protobufjs reads in proto/: the script was run after the last change", () => {
  const own = (root: protobuf.Root) => linesOf(root).filter((line) => !line.startsWith("google.protobuf."));
  assertEquals(own(TABLE), own(loadProtoRoot()));
});

Deno.test("decodeFileDescriptor knows name, imports and symbols of every file", () => {
  for (const { name, decoded: { symbols: _, ...rest }, file } of FILES) {
    const { dependency } = descriptor.FileDescriptorProto.toObject(file, { arrays: true });
    assertEquals(rest, { name, dependencies: dependency });
  }
  const symbols = FILES.flatMap(({ decoded }) => decoded.symbols);
  const names = linesOf(TABLE).flatMap((line) => line.split(" ").slice(0, 1));
  assertEquals([...new Set(symbols)].sort(), [...new Set(names)]);
});

/** The symbols of a namespace, each with what is declared of it, sorted. */
function linesOf(namespace: protobuf.NamespaceBase): string[] {
  return namespace.nestedArray.flatMap((one) => {
    const full = one.fullName.slice(1);
    if (one instanceof protobuf.Enum) return [full, ...valuesOf(one)];
    if (one instanceof protobuf.Service) return [full, ...one.methodsArray.map(lineOfMethod)];
    const inner = one instanceof protobuf.Namespace ? linesOf(one) : [];
    if (!(one instanceof protobuf.Type)) return inner;
    const oneofs = one.oneofsArray.map(({ fullName }) => `${fullName.slice(1)} oneof`);
    return [full, ...one.fieldsArray.flatMap(linesOfField), ...oneofs, ...inner];
  }).sort();
}

/** The values of an enum are names next to it. */
function valuesOf({ parent, values, name }: protobuf.Enum): string[] {
  const scope = parent?.fullName.slice(1);
  return Object.entries(values).map(([value, number]) => `${scope}.${value} ${name} ${number}`);
}

function linesOfField(field: protobuf.Field): string[] {
  const name = field.fullName.slice(1);
  const type = field.resolve().resolvedType?.fullName ?? field.type;
  if (!(field instanceof protobuf.MapField)) return [`${name} ${field.id} ${type} ${field.repeated}`];
  // A map is a list of pairs whose type has a name made of that of the field.
  const scope = name.slice(0, name.lastIndexOf(".") + 1);
  const entry = `${scope}${field.name[0]?.toUpperCase()}${field.name.slice(1)}Entry`;
  const pair = [entry, `${entry}.key 1 ${field.keyType} false`, `${entry}.value 2 ${type} false`];
  return [...pair, `${name} ${field.id} .${entry} true`];
}

function lineOfMethod(method: protobuf.Method): string {
  const { fullName, resolvedRequestType, resolvedResponseType } = method.resolve() as protobuf.Method;
  const types = `${resolvedRequestType?.fullName} ${resolvedResponseType?.fullName}`;
  return `${fullName.slice(1)} ${types} ${method.requestStream === true} ${method.responseStream === true}`;
}

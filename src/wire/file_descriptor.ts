import { WireReader } from "./reader.ts";
import { LENGTH } from "./wire_format.ts";

/** The parts of a `google.protobuf.FileDescriptorProto` that reflection uses. */
interface WireFileDescriptor {
  readonly name: string;
  /** Names of imported files. */
  readonly dependencies: readonly string[];
  /** Full names of all messages, fields, oneofs, enums and their values, services and methods. */
  readonly symbols: readonly string[];
}

/** In which fields a descriptor message contains plain children, messages and enums. */
interface Layout {
  readonly label: string;
  readonly children: readonly number[];
  readonly messages?: number;
  readonly enums?: number;
}

const MESSAGE: Layout = { label: "DescriptorProto", children: [2, 6, 8], messages: 3, enums: 4 };
const ENUM: Layout = { label: "EnumDescriptorProto", children: [2] };
const SERVICE: Layout = { label: "ServiceDescriptorProto", children: [2] };
const LEAF: Layout = { label: "a child of a descriptor", children: [] };

/** A declaration and those inside it. */
interface Declared {
  readonly name: string;
  readonly layout: Layout;
  readonly inside: readonly Declared[];
}

/** Reads a file descriptor. */
export function decodeFileDescriptor(bytes: Uint8Array): WireFileDescriptor {
  const reader = new WireReader(bytes, "FileDescriptorProto");
  const dependencies: string[] = [];
  const declared: Declared[] = [];
  let name = "";
  let scope = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) name = reader.string();
    else if (tag === (2 << 3 | LENGTH)) scope = reader.string();
    else if (tag === (3 << 3 | LENGTH)) dependencies.push(reader.string());
    else if (tag === (4 << 3 | LENGTH)) declared.push(readDeclared(reader, MESSAGE));
    else if (tag === (5 << 3 | LENGTH)) declared.push(readDeclared(reader, ENUM));
    else if (tag === (6 << 3 | LENGTH)) declared.push(readDeclared(reader, SERVICE));
    else if (tag === (7 << 3 | LENGTH)) declared.push(readDeclared(reader, LEAF));
    else reader.skip();
  }
  return { name, dependencies, symbols: declared.flatMap((one) => symbolsOf(one, scope)) };
}

function readDeclared(reader: WireReader, layout: Layout): Declared {
  const inside: Declared[] = [];
  let name = "";
  for (const tag of reader.message(layout.label)) {
    const child = tag === (1 << 3 | LENGTH) ? undefined : layoutOfField(layout, tag);
    if (child !== undefined) inside.push(readDeclared(reader, child));
    else if (tag === (1 << 3 | LENGTH)) name = reader.string();
    else reader.skip();
  }
  return { name, layout, inside };
}

function layoutOfField(layout: Layout, tag: number): Layout | undefined {
  if ((tag & 7) !== LENGTH) return undefined;
  const field = tag >>> 3;
  if (field === layout.messages) return MESSAGE;
  if (field === layout.enums) return ENUM;
  return layout.children.includes(field) ? LEAF : undefined;
}

/** The full names of a declaration. In protobuf, enum values belong to the scope around the enum. */
function symbolsOf(declared: Declared, scope: string): string[] {
  const full = scope === "" ? declared.name : `${scope}.${declared.name}`;
  const inner = declared.layout === ENUM ? scope : full;
  return [full, ...declared.inside.flatMap((one) => symbolsOf(one, inner))];
}

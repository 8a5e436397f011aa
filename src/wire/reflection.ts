import { WireReader } from "./reader.ts";
import { LENGTH } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** The kind of a request; `nothing` for none or an unknown one. */
type WireReflectionKind =
  | "file_by_filename"
  | "file_containing_symbol"
  | "file_containing_extension"
  | "all_extension_numbers_of_type"
  | "list_services"
  | "nothing";

/** A `ServerReflectionRequest` of `v1` or `v1alpha`, which are equal on the wire. */
export interface WireReflectionRequest {
  readonly host: string;
  readonly kind: WireReflectionKind;
  /** A file, symbol or type; for an extension the extended type. */
  readonly name: string;
}

/** The result of a request. */
export type WireReflectionAnswer =
  | { readonly kind: "files"; readonly files: readonly Uint8Array[] }
  | { readonly kind: "services"; readonly names: readonly string[] }
  | { readonly kind: "error"; readonly code: number; readonly message: string };

/** A `ServerReflectionResponse`. */
interface WireReflectionResponse {
  readonly host: string;
  /** The bytes of the answered request. */
  readonly request: Uint8Array;
  readonly answer: WireReflectionAnswer;
}

/** Reads a request; the last of several kinds counts. */
export function decodeReflectionRequest(bytes: Uint8Array): WireReflectionRequest {
  const reader = new WireReader(bytes, "ServerReflectionRequest");
  let host = "";
  let kind: WireReflectionKind = "nothing";
  let name = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    const asked = kindOfTag(tag);
    if (tag === (1 << 3 | LENGTH)) host = reader.string();
    else if (asked !== undefined) {
      name = asked === "file_containing_extension" ? readExtendedType(reader) : reader.string();
      kind = asked;
    } else reader.skip();
  }
  return { host, kind, name };
}

/** Writes a response. */
export function encodeReflectionResponse(response: WireReflectionResponse): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, response.host);
  writer.choiceBytes(2, response.request);
  writeAnswer(writer, response.answer);
  return writer.finish();
}

function kindOfTag(tag: number): WireReflectionKind | undefined {
  switch (tag) {
    case 3 << 3 | LENGTH:
      return "file_by_filename";
    case 4 << 3 | LENGTH:
      return "file_containing_symbol";
    case 5 << 3 | LENGTH:
      return "file_containing_extension";
    case 6 << 3 | LENGTH:
      return "all_extension_numbers_of_type";
    case 7 << 3 | LENGTH:
      return "list_services";
    default:
      return undefined;
  }
}

function readExtendedType(reader: WireReader): string {
  let containingType = "";
  for (const tag of reader.message("ExtensionRequest")) {
    if (tag === (1 << 3 | LENGTH)) containingType = reader.string();
    else reader.skip();
  }
  return containingType;
}

function writeAnswer(writer: WireWriter, answer: WireReflectionAnswer): void {
  if (answer.kind === "files") {
    const start = writer.begin(4);
    for (const file of answer.files) writer.choiceBytes(1, file);
    return writer.end(start);
  }
  if (answer.kind === "services") {
    const start = writer.begin(6);
    for (const name of answer.names) {
      const service = writer.begin(1);
      writer.string(1, name);
      writer.end(service);
    }
    return writer.end(start);
  }
  const start = writer.begin(7);
  writer.int32(1, answer.code);
  writer.string(2, answer.message);
  writer.end(start);
}

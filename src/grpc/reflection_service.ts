import { FILE_DESCRIPTORS } from "../wire/descriptors.ts";
import { decodeFileDescriptor } from "../wire/file_descriptor.ts";
import {
  decodeReflectionRequest,
  encodeReflectionResponse,
  type WireReflectionAnswer,
  type WireReflectionRequest,
} from "../wire/reflection.ts";
import {
  type BidiMethod,
  decodeRequest,
  GRPC_CODES,
  type GrpcCode,
  type GrpcService,
} from "./grpc_service.ts";

const SERVICE_NAMES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;

/** The files of the wire contract. */
type Contract = ReturnType<typeof loadContract>;

/** Both versions of the reflection service. `services` is called at each listing and may include these two. */
export function createReflectionServices(services: () => readonly GrpcService[]): GrpcService[] {
  let contract: Contract | undefined;
  const handle = (message: Uint8Array): Uint8Array => {
    const request = decodeRequest(decodeReflectionRequest, message);
    // Built at the first request, because most servers never get one.
    contract ??= loadContract();
    const answer = answerTo(request, contract, services);
    return encodeReflectionResponse({ host: request.host, request: message, answer });
  };
  const method: BidiMethod = {
    kind: "bidi",
    name: "ServerReflectionInfo",
    open: (peer) => ({ receive: (message) => peer.send(handle(message)) }),
  };
  return SERVICE_NAMES.map((name) => ({ name, methods: [method] }));
}

function answerTo(
  request: WireReflectionRequest,
  contract: Contract,
  services: () => readonly GrpcService[],
): WireReflectionAnswer {
  const { kind, name } = request;
  switch (kind) {
    case "list_services":
      return { kind: "services", names: services().map((service) => service.name).sort() };
    case "file_by_filename":
      if (!contract.files.has(name)) {
        return refusal("NOT_FOUND", `Cannot find file "${name}": it is not known here`);
      }
      return { kind: "files", files: withDependencies(name, contract) };
    case "file_containing_symbol": {
      const file = contract.fileOfSymbol.get(name);
      if (file === undefined) {
        return refusal("NOT_FOUND", `Cannot find symbol "${name}": it is not known here`);
      }
      return { kind: "files", files: withDependencies(file, contract) };
    }
    case "file_containing_extension":
    case "all_extension_numbers_of_type":
      return refusal("NOT_FOUND", `Cannot find extensions of "${name}": there are none`);
    case "nothing":
      return refusal(
        "INVALID_ARGUMENT",
        'Cannot answer kind of question "unknown": ask for a file, symbol or list',
      );
  }
}

function refusal(code: GrpcCode, message: string): WireReflectionAnswer {
  return { kind: "error", code: GRPC_CODES[code], message };
}

/** The file and its transitive imports, each once, the file first. */
function withDependencies(name: string, contract: Contract): Uint8Array[] {
  const names = new Set([name]);
  const files: Uint8Array[] = [];
  for (const next of names) {
    const file = contract.files.get(next);
    if (file === undefined) continue;
    files.push(file.bytes);
    // The loop visits items added to the set meanwhile.
    for (const dependency of file.dependencies) names.add(dependency);
  }
  return files;
}

function loadContract() {
  const files = new Map<string, { bytes: Uint8Array; dependencies: readonly string[] }>();
  const fileOfSymbol = new Map<string, string>();
  for (const [name, text] of Object.entries(FILE_DESCRIPTORS)) {
    const bytes = Uint8Array.fromBase64(text);
    const { dependencies, symbols } = decodeFileDescriptor(bytes);
    files.set(name, { bytes, dependencies });
    for (const symbol of symbols) fileOfSymbol.set(symbol, name);
  }
  return { files, fileOfSymbol };
}

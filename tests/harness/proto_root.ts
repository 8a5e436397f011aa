import protobuf from "protobufjs";

const PROTO_FOLDER = new URL("../../proto/", import.meta.url);

/** Names of the files in `proto/`, sorted. */
export function protoFileNames(folder = PROTO_FOLDER, prefix = ""): string[] {
  const names: string[] = [];
  for (const entry of Deno.readDirSync(folder)) {
    const path = `${prefix}${entry.name}`;
    if (entry.isDirectory) names.push(...protoFileNames(new URL(`${entry.name}/`, folder), `${path}/`));
    else names.push(path);
  }
  return names.sort();
}

/** Everything in `proto/`, as protobufjs reads it: a codec that shares nothing with ours. */
export function loadProtoRoot(): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) =>
    target.startsWith("google/protobuf/") ? target : new URL(target, PROTO_FOLDER).pathname;
  root.loadSync(protoFileNames(), { keepCase: true });
  root.resolveAll();
  return root;
}

import { dirname, resolve } from "node:path";
import type { Settings } from "../settings/table.ts";

/** The settings that name watched folders. */
export type WatchingSettings = Pick<
  Settings,
  | "RUNTIME_ROOT"
  | "RUNTIME_SUBDIRECTORY"
  | "RUNTIME_APPDIRECTORY"
  | "WORKFLOW_DIRECTORY"
  | "GRPC_SERVER_TLS_CERT"
  | "GRPC_SERVER_TLS_KEY"
  | "HTTP_SERVER_TLS_CERT"
  | "HTTP_SERVER_TLS_KEY"
>;

/**
 * Why a database file is in a bad place; nothing where it is not. The runtime opens and closes each file that changes in
 * a watched folder, and a process that closes a file loses its locks on it: another process can then open the store at
 * the same time, which SQLite answers with errors at best.
 */
export function storeFolderProblem(path: string, settings: WatchingSettings): string | undefined {
  const folder = dirname(resolve(path));
  if (!watchedFolders(settings).some((watched) => resolve(watched) === folder)) return undefined;
  return `WEBHOOK_STORE "${path}" is in a folder that is watched for changes, where it loses its locks; ` +
    "move it to a separate folder";
}

function watchedFolders(settings: WatchingSettings): string[] {
  const { RUNTIME_ROOT: root, RUNTIME_SUBDIRECTORY: below, RUNTIME_APPDIRECTORY: rules } = settings;
  const files = [
    settings.GRPC_SERVER_TLS_CERT,
    settings.GRPC_SERVER_TLS_KEY,
    settings.HTTP_SERVER_TLS_CERT,
    settings.HTTP_SERVER_TLS_KEY,
  ];
  const folders = [dirname(resolve(root)), root, resolve(root, below), resolve(root, below, rules)];
  for (const file of files) if (file !== undefined && file !== "") folders.push(dirname(resolve(file)));
  if (settings.WORKFLOW_DIRECTORY !== undefined) folders.push(settings.WORKFLOW_DIRECTORY);
  return folders;
}

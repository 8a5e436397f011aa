import type { PortLine } from "../base/port_logger.ts";
import type { FileProviderOptions } from "./file_provider.ts";
import type { LoadPart } from "./load_parts.ts";

/** Where rule files are, as a worker is told. */
export type RuleFolderOptions = Omit<FileProviderOptions, "clock" | "logger">;

/** What the main thread tells the worker that reads rule files. `start` comes first and once. */
export type ToWorker =
  | { readonly type: "start"; readonly options: RuleFolderOptions }
  | { readonly type: "reload" }
  /** A part of a load that was not its last was taken; the next one may come. */
  | { readonly type: "taken" }
  /** Is answered by `alive` at once. */
  | { readonly type: "ping" }
  /** Is answered by `closed`, after which nothing comes any more. */
  | { readonly type: "close" };

/** What the worker tells the main thread. */
export type FromWorker =
  | { readonly type: "load"; readonly part: LoadPart }
  | PortLine
  | { readonly type: "alive" }
  | { readonly type: "closed" };

import type { MemoryCache } from "../cache/memory_cache.ts";
import type { RateLimitService } from "../ratelimit/service.ts";
import type { Settings } from "../settings/table.ts";
import type { Decide } from "../telemetry/tracing_decision.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ForgetKeys } from "./decisions.ts";
import type { ServiceParts } from "./parts.ts";
import type { ApplyRules } from "./rules.ts";
import type { DecidingWorkerHandle } from "./workers/message.ts";

/** What decides gRPC calls: this thread, or workers. */
export interface Deciders {
  /** Applies rules to this thread and all workers. */
  readonly applyRules: ApplyRules;
  /** Opens the gRPC port; throws when it cannot. */
  open(): Promise<OpenGrpcPort>;
  /** Brings the statistics up to date; absent where they always are. */
  readonly refresh?: () => Promise<void>;
  readonly forget?: ForgetKeys;
  /** Ends the workers where the port was not opened. */
  close(): Promise<void>;
}

interface OpenGrpcPort {
  /** `host:port`, or `unix:path`. */
  readonly address: string;
  close(graceMs: number): Promise<void>;
}

/** What the deciders are opened with. */
export interface DecidersOptions {
  readonly version: string;
  readonly tracing: Tracing;
  readonly decide: Decide;
  readonly service: RateLimitService;
  readonly cache: { readonly memory: MemoryCache };
  readonly onGivenUp: (reason: string) => void;
  /** Replaces the threads that decide, in tests. */
  readonly createWorker?: (() => DecidingWorkerHandle) | undefined;
}

/** Loads what decides gRPC calls; the result opens it. */
export async function loadDeciders(
  settings: Settings,
): Promise<{ openDeciders: (parts: ServiceParts, options: DecidersOptions) => Deciders }> {
  return settings.WORKERS === 1 ? await loadThisThread(settings) : await loadWorkers();
}

async function loadThisThread(settings: Settings) {
  const { loadGrpc, openGrpc } = await import("./grpc.ts");
  await loadGrpc(settings);
  return {
    openDeciders: (parts: ServiceParts, { tracing, decide, service }: DecidersOptions): Deciders => ({
      applyRules: (rules) => service.setRules(rules),
      open: () => openGrpc(parts, tracing, decide, service),
      close: () => Promise.resolve(),
    }),
  };
}

async function loadWorkers() {
  const [{ DecidingWorkers }, { SharedMemoryCache }] = await Promise.all([
    import("./workers/deciding_workers.ts"),
    import("../cache/shared_memory_cache.ts"),
  ]);
  return {
    openDeciders(parts: ServiceParts, { cache, service, ...options }: DecidersOptions): Deciders {
      const { memory } = cache;
      if (!(memory instanceof SharedMemoryCache)) throw new Error("Cannot decide in workers: not shared");
      const workers = new DecidingWorkers(parts, { ...options, service, memory });
      return {
        async applyRules(rules, texts) {
          await workers.setRules(texts);
          service.setRules(rules);
        },
        open: async () => ({ address: await workers.listen(), close: (graceMs) => workers.close(graceMs) }),
        refresh: () => workers.refresh(),
        forget: (keys) => workers.forget(keys),
        close: () => workers.close(0),
      };
    },
  };
}

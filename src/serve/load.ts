import type { Settings } from "../settings/read_settings.ts";

/**
 * Loads what every service needs and no thread has to wait for. Nothing is imported for the first time once the ports are
 * open: it would fail while no file descriptor is left.
 */
export async function loadListeners(settings: Settings) {
  const [ports, cache, service, pull, http, grpc] = await Promise.all([
    import("./shared_ports.ts"),
    import("./cache.ts"),
    import("./decisions.ts"),
    import("./metrics.ts"),
    import("./http.ts"),
    import("./grpc.ts").then(async (module) => {
      await module.loadGrpc(settings);
      return module;
    }),
  ]);
  return { ...ports, ...cache, ...service, ...pull, ...http, ...grpc };
}

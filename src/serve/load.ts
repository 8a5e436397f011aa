import type { Settings } from "../settings/read_settings.ts";

/** Loads what every service requires before its ports open: a later import would fail without a free file descriptor. */
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

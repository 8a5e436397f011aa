import type { TlsPair, TlsPairFiles } from "../net/tls_files.ts";
import { WatchedPair } from "../net/watched_pair.ts";
import { systemBell } from "../threads/bell.ts";
import { tlsMetrics } from "./listener_metrics.ts";
import type { ServiceParts } from "./parts.ts";

/** TLS of a listener, whose pair can be replaced. */
interface RenewableTls {
  renew(pair: TlsPair): void;
}

/** Options of `openWatchedTls`. */
interface WatchedTlsOptions<Tls extends RenewableTls> {
  /** The name of the listener in metrics. */
  readonly name: string;
  readonly files: TlsPairFiles;
  /** The settings that name the files. */
  readonly names: TlsPairFiles;
  readonly create: (pair: TlsPair) => Tls;
  /** Called after the pair was replaced. */
  readonly onRenewed?: () => void;
}

/** The TLS of a listener with the pair of its files, reloaded when they change. Throws when they are unusable. */
export async function openWatchedTls<Tls extends RenewableTls>(
  { stats, logger, clock }: ServiceParts,
  { name, files, names, create, onRenewed }: WatchedTlsOptions<Tls>,
): Promise<{ readonly tls: Tls; close(): Promise<void> }> {
  const watched = await WatchedPair.open({
    files,
    names,
    bell: systemBell,
    clock,
    logger,
    onPair: (pair) => {
      tls.renew(pair);
      onRenewed?.();
    },
  });
  const tls = create(watched.current);
  const counters = {
    tls_reloaded: () => watched.metrics.reloaded,
    tls_reload_failed: () => watched.metrics.failed,
  };
  stats.addMetrics(tlsMetrics(name), { counters, gauges: {} });
  return { tls, close: () => watched.close() };
}

import { fileState } from "../base/file_state.ts";
import { gauge, type MetricGroup, metricReaders } from "../base/metrics.ts";
import { isPostgresAddress, parsePostgresAddress } from "../base/postgres_address.ts";
import { settledWithin } from "../base/wait.ts";
import { WakeLoop } from "../base/wake_loop.ts";
import type { Settings } from "../settings/table.ts";
import type { ServiceParts } from "./parts.ts";

/** A PEM file with certificates that the service uses. */
interface CertificateFile {
  /** The setting, or the parameter of the address of the store, that names it. */
  readonly setting: string;
  readonly path: string;
}

/** The certificate of a file that expires first. */
interface Validity {
  readonly from: number;
  readonly to: number;
}

const DAY_MS = 86_400_000;
/** A certificate degrades the service this long before it expires. */
const NOTICE_MS = 14 * DAY_MS;
const POLL_MS = 10_000;
/** How long `close` waits for a file system that hangs. */
const CLOSE_MS = 1_000;

/** The metrics of certificates in the files of these settings. */
export function certificateMetrics(settings: readonly string[]): MetricGroup {
  return {
    prefix: "ratelimit.certificates.",
    metrics: {
      expires_in_seconds: gauge(
        "seconds",
        "Time until the first certificate of a file expires; negative after that, and 0 while the file was never " +
          "readable. The label is the setting that names the file, or `sslcert` or `sslrootcert` of `WEBHOOK_STORE`.",
        { label: "setting", values: settings },
      ),
    },
  };
}

/** The files with certificates that the settings name, of parts that are on. */
export function certificateFiles(settings: Settings): readonly CertificateFile[] {
  const otlp = (name: string) => settings["OTEL_EXPORTER_OTLP_<OPTION>"].get(name)?.trim();
  const isExported = settings.TRACING_ENABLED || settings.OTEL_METRICS_EXPORTER === "otlp";
  const otlpNames = ["", "TRACES_", "METRICS_"].flatMap((signal) => [
    `${signal}CERTIFICATE`,
    `${signal}CLIENT_CERTIFICATE`,
  ]);
  const named: readonly (readonly [isOn: boolean, setting: string, path: string | undefined])[] = [
    [settings.GRPC_SERVER_USE_TLS, "GRPC_SERVER_TLS_CERT", settings.GRPC_SERVER_TLS_CERT],
    [settings.GRPC_SERVER_USE_TLS, "GRPC_CLIENT_TLS_CACERT", settings.GRPC_CLIENT_TLS_CACERT],
    [settings.HTTP_SERVER_USE_TLS, "HTTP_SERVER_TLS_CERT", settings.HTTP_SERVER_TLS_CERT],
    [settings.BACKEND_TYPE === "kv", "KV_TLS_CLIENT_CERT", settings.KV_TLS_CLIENT_CERT],
    [settings.BACKEND_TYPE === "kv", "KV_TLS_CACERT", settings.KV_TLS_CACERT],
    [settings.MC_TLS, "MC_TLS_CLIENT_CERT", settings.MC_TLS_CLIENT_CERT],
    [settings.MC_TLS, "MC_TLS_CACERT", settings.MC_TLS_CACERT],
    ...(["CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT"] as const).map((name) =>
      [settings.CONFIG_GRPC_XDS_SERVER_USE_TLS, name, settings[name]] as const
    ),
    [settings.WEBHOOK_STORE !== undefined, "WEBHOOK_CA_FILE", settings.WEBHOOK_CA_FILE],
    ...storeFiles(settings.WEBHOOK_STORE),
    ...otlpNames.map((name) => [isExported, `OTEL_EXPORTER_OTLP_${name}`, otlp(name)] as const),
  ];
  return named.flatMap(([isOn, setting, path]) => isOn && path ? [{ setting, path }] : []);
}

function storeFiles(store: string | undefined): (readonly [boolean, string, string | undefined])[] {
  if (store === undefined || !isPostgresAddress(store)) return [];
  const { certFile, rootCertFile } = parsePostgresAddress(store).fields;
  return [[true, "sslcert", certFile], [rootCertFile !== "system", "sslrootcert", rootCertFile]];
}

/** Looks at the certificates that the service uses: their expiry is a metric, and degrades the service when it is near. */
export class CertificateWatch {
  readonly #parts: Pick<ServiceParts, "clock" | "health">;
  readonly #files: readonly CertificateFile[];
  readonly #known = new Map<string, { readonly state: string; readonly validity: Validity }>();
  readonly #loop: WakeLoop;

  /** Begins to look, where there are files. */
  constructor(parts: Pick<ServiceParts, "clock" | "health" | "stats">, files: readonly CertificateFile[]) {
    this.#parts = parts;
    this.#files = files;
    this.#loop = new WakeLoop({ clock: parts.clock, pollMs: POLL_MS, round: () => this.#look() });
    if (files.length === 0) return;
    const group = certificateMetrics(files.map(({ setting }) => setting));
    const gauges = metricReaders(group.metrics, "gauge", (name) => this.#secondsLeft(name));
    parts.stats.addMetrics(group, { counters: {}, gauges });
    this.#loop.start();
  }

  async close(): Promise<void> {
    await settledWithin(this.#loop.stop(), CLOSE_MS, this.#parts.clock);
  }

  #secondsLeft(metric: string): number {
    const setting = metric.slice(metric.indexOf(".") + 1);
    const validity = this.#known.get(setting)?.validity;
    return validity === undefined ? 0 : Math.floor((validity.to - this.#parts.clock.now()) / 1_000);
  }

  async #look(): Promise<boolean> {
    const causes: string[] = [];
    for (const { setting, path } of this.#files) {
      const cause = await this.#read(setting, path);
      if (cause !== undefined) causes.push(`${setting} ${cause}`);
    }
    this.#parts.health.degrade("certificates", causes);
    return false;
  }

  /** Reads a file if it changed since it was read; returns why it degrades the service. */
  async #read(setting: string, path: string): Promise<string | undefined> {
    const { clock } = this.#parts;
    const state = await fileState(path);
    const before = this.#known.get(setting);
    if (before?.state === state) return causeOf(before.validity, clock.now());
    try {
      const { readValidity } = await import("../base/tls_files.ts");
      const validity = await readValidity(setting, path);
      this.#known.set(setting, { state, validity });
      return causeOf(validity, clock.now());
    } catch {
      // The error has the path, which not everyone who may ask for the health may see. Its reader logs it.
      return "cannot be read";
    }
  }
}

function causeOf({ from, to }: Validity, now: number): string | undefined {
  const day = new Date(to).toISOString();
  if (to < now) return `expired on ${day}`;
  if (from > now) return `is not valid before ${new Date(from).toISOString()}`;
  if (to - now >= NOTICE_MS) return undefined;
  const days = Math.floor((to - now) / DAY_MS);
  return `expires ${days === 0 ? "within a day" : days === 1 ? "in 1 day" : `in ${days} days`}, on ${day}`;
}

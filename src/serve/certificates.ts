import { gauge, type MetricGroup, metricReaders } from "../base/metrics.ts";
import { isPostgresAddress, parsePostgresAddress } from "../base/postgres_address.ts";
import { fileStates, WatchedFiles } from "../threads/watched_files.ts";
import type { Settings } from "../settings/table.ts";
import type { ServiceParts } from "./parts.ts";

/** A PEM file with certificates that the service uses. */
interface CertificateFile {
  /** The setting, or the parameter of the address of the store, that names it. */
  readonly setting: string;
  readonly path: string;
  /** The key of its first certificate, where it is read again while the service runs. */
  readonly key?: { readonly setting: string; readonly path: string } | undefined;
}

/** The certificate of a file that expires first. */
interface Validity {
  readonly from: number;
  readonly to: number;
}

const DAY_MS = 86_400_000;
/** A certificate degrades the service this long before it expires. */
const NOTICE_MS = 14 * DAY_MS;
/** The interval of looks for certificates that expire. */
const EXPIRY_MS = 10_000;

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
  const named = (isOn: boolean, ...[setting, keySetting]: FileSettings) =>
    fileOf(isOn, setting, settings[setting], keySetting, keySetting && settings[keySetting]);
  return [
    named(settings.GRPC_SERVER_USE_TLS, "GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY"),
    named(settings.GRPC_SERVER_USE_TLS, "GRPC_CLIENT_TLS_CACERT"),
    named(settings.HTTP_SERVER_USE_TLS, "HTTP_SERVER_TLS_CERT", "HTTP_SERVER_TLS_KEY"),
    named(settings.BACKEND_TYPE === "kv", "KV_TLS_CLIENT_CERT", "KV_TLS_CLIENT_KEY"),
    named(settings.BACKEND_TYPE === "kv", "KV_TLS_CACERT"),
    named(settings.MC_TLS, "MC_TLS_CLIENT_CERT", "MC_TLS_CLIENT_KEY"),
    named(settings.MC_TLS, "MC_TLS_CACERT"),
    named(
      settings.CONFIG_GRPC_XDS_SERVER_USE_TLS,
      "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
      "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
    ),
    named(settings.CONFIG_GRPC_XDS_SERVER_USE_TLS, "CONFIG_GRPC_XDS_SERVER_TLS_CACERT"),
    named(settings.WEBHOOK_STORE !== undefined, "WEBHOOK_CA_FILE"),
    ...storeFiles(settings.WEBHOOK_STORE),
    // Their keys are read at the start only.
    ...otlpNames.map((name) => fileOf(isExported, `OTEL_EXPORTER_OTLP_${name}`, otlp(name))),
  ].flat();
}

/** The setting of a file with certificates, and of the key of the first one. */
type FileSettings = readonly [
  setting: Extract<keyof Settings, `${string}CERT` | "WEBHOOK_CA_FILE">,
  key?: Extract<keyof Settings, `${string}TLS_KEY` | `${string}CLIENT_KEY`>,
];

function fileOf(
  isOn: boolean,
  setting: string,
  path: string | undefined,
  keySetting?: string,
  keyPath?: string,
): readonly CertificateFile[] {
  if (!isOn || !path) return [];
  const key = keySetting === undefined || !keyPath ? undefined : { setting: keySetting, path: keyPath };
  return [{ setting, path, key }];
}

function storeFiles(store: string | undefined): (readonly CertificateFile[])[] {
  if (store === undefined || !isPostgresAddress(store)) return [];
  const { certFile, keyFile, rootCertFile } = parsePostgresAddress(store).fields;
  return [
    fileOf(true, "sslcert", certFile, "sslkey", keyFile),
    fileOf(rootCertFile !== "system", "sslrootcert", rootCertFile),
  ];
}

/** Looks at the certificates that the service uses: their expiry is a metric, and degrades the service when it is near. */
export class CertificateWatch {
  readonly #parts: Pick<ServiceParts, "clock" | "health">;
  readonly #files: readonly CertificateFile[];
  readonly #known = new Map<string, { readonly state: string; readonly validity: Validity }>();
  readonly #watched: WatchedFiles;

  /** Begins to look, where there are files. */
  constructor(parts: Pick<ServiceParts, "clock" | "health" | "stats">, files: readonly CertificateFile[]) {
    this.#parts = parts;
    this.#files = files;
    const { clock } = parts;
    const paths = files.flatMap(pathsOf);
    this.#watched = new WatchedFiles({
      look: async () => `${await fileStates(paths)}\n${Math.floor(clock.now() / EXPIRY_MS)}`,
      onChange: () => this.#read(),
      clock,
    });
    if (files.length === 0) return;
    const group = certificateMetrics(files.map(({ setting }) => setting));
    const gauges = metricReaders(group.metrics, "gauge", (name) => this.#secondsLeft(name));
    parts.stats.addMetrics(group, { counters: {}, gauges });
    void this.#watched.start();
  }

  async close(): Promise<void> {
    await this.#watched.close();
  }

  #secondsLeft(metric: string): number {
    const setting = metric.slice(metric.indexOf(".") + 1);
    const validity = this.#known.get(setting)?.validity;
    return validity === undefined ? 0 : Math.floor((validity.to - this.#parts.clock.now()) / 1_000);
  }

  async #read(): Promise<boolean> {
    const causes: string[] = [];
    for (const file of this.#files) {
      const cause = await this.#cause(file);
      if (cause !== undefined) causes.push(`${file.setting} ${cause}`);
    }
    this.#parts.health.degrade("certificates", causes);
    return false;
  }

  /** Reads a file and its key if they changed since they were read; returns why they degrade the service. */
  async #cause(file: CertificateFile): Promise<string | undefined> {
    const { clock } = this.#parts;
    const { setting, path, key } = file;
    const state = await fileStates(pathsOf(file));
    const before = this.#known.get(setting);
    if (before?.state === state) return causeOf(before.validity, clock.now());
    try {
      const { readTlsPair, readValidity } = await import("../net/tls_files.ts");
      const validity = await readValidity(setting, path);
      const pair = key && { cert: path, key: key.path };
      const isUsable = pair === undefined || await readTlsPair(pair, pair).then(() => true, () => false);
      if (!isUsable) return `cannot be used with ${key?.setting}`;
      this.#known.set(setting, { state, validity });
      return causeOf(validity, clock.now());
    } catch {
      // The error has the path, which not everyone who may ask for the health may see. Its reader logs it.
      return "cannot be read";
    }
  }
}

function pathsOf({ path, key }: CertificateFile): string[] {
  return key === undefined ? [path] : [path, key.path];
}

function causeOf({ from, to }: Validity, now: number): string | undefined {
  const day = new Date(to).toISOString();
  if (to < now) return `expired on ${day}`;
  if (from > now) return `is not valid before ${new Date(from).toISOString()}`;
  if (to - now >= NOTICE_MS) return undefined;
  const days = Math.floor((to - now) / DAY_MS);
  return `expires ${days === 0 ? "within a day" : days === 1 ? "in 1 day" : `in ${days} days`}, on ${day}`;
}

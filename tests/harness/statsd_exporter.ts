import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** Starts a statsd_exporter of the test's own, on free ports of the loopback address. */
export async function startStatsdExporter(): Promise<StatsdExporter> {
  const exporter = new StatsdExporter({ port: freePort(), webPort: freePort() });
  await exporter.start();
  return exporter;
}

/** Where a statsd_exporter is. */
export interface StatsdExporterPorts {
  readonly port: number;
  readonly webPort: number;
}

/** A running statsd_exporter; killed at the end of an `await using`. */
export class StatsdExporter implements AsyncDisposable {
  /** The port on 127.0.0.1 that takes statistics, over UDP and over TCP. */
  readonly port: number;
  /** The port on 127.0.0.1 of its page. */
  readonly webPort: number;
  #child: ChildProcess | undefined;

  constructor(ports: StatsdExporterPorts) {
    this.port = ports.port;
    this.webPort = ports.webPort;
  }

  /** Starts it and waits until it shows its page. */
  async start(): Promise<void> {
    const child = new ChildProcess(requireTool("statsd_exporter"), {
      args: [
        `--statsd.listen-udp=127.0.0.1:${this.port}`,
        `--statsd.listen-tcp=127.0.0.1:${this.port}`,
        `--web.listen-address=127.0.0.1:${this.webPort}`,
        "--statsd.event-flush-interval=10ms",
      ],
    });
    this.#child = child;
    const shows = () => this.page().then(() => true, () => false);
    await until("statsd_exporter", async () => !child.running || await shows());
    if (child.running) return;
    throw new Error(`Cannot start "statsd_exporter": it ended: ${child.stderrLines.slice(-3).join("; ")}`);
  }

  /** Its own page of metrics. */
  async page(): Promise<string> {
    return await (await fetch(`http://127.0.0.1:${this.webPort}/metrics`)).text();
  }

  /** Values by name and labels, as the page shows them, of metrics whose names begin with this. */
  async metrics(prefix: string): Promise<Record<string, number>> {
    const lines = (await this.page()).split("\n").filter((line) => line.startsWith(prefix));
    return Object.fromEntries(lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child?.kill();
  }
}

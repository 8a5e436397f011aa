import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** A running statsd_exporter; killed at the end of an `await using`. */
interface StatsdExporter extends AsyncDisposable {
  /** The port on 127.0.0.1 that takes statistics, over UDP and over TCP. */
  readonly port: number;
  /** Values by name and labels, as its page shows them, of metrics whose names begin with this. */
  metrics(prefix: string): Promise<Record<string, number>>;
}

/** Starts a statsd_exporter on free ports of the loopback address. */
export async function startStatsdExporter(): Promise<StatsdExporter> {
  const [port, webPort] = [freePort(), freePort()];
  const child = new ChildProcess(requireTool("statsd_exporter"), {
    args: [
      `--statsd.listen-udp=127.0.0.1:${port}`,
      `--statsd.listen-tcp=127.0.0.1:${port}`,
      `--web.listen-address=127.0.0.1:${webPort}`,
      "--statsd.event-flush-interval=10ms",
    ],
  });
  const page = async () => await (await fetch(`http://127.0.0.1:${webPort}/metrics`)).text();
  await until("statsd_exporter", async () => !child.running || await page() !== "");
  if (!child.running) {
    throw new Error(`Cannot start "statsd_exporter": it ended: ${child.stderrLines.slice(-3).join("; ")}`);
  }
  return {
    port,
    async metrics(prefix) {
      const lines = (await page()).split("\n").filter((line) => line.startsWith(prefix));
      return Object.fromEntries(lines.map((line) => {
        const space = line.lastIndexOf(" ");
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }));
    },
    [Symbol.asyncDispose]: () => child.kill(),
  };
}

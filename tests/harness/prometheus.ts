import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** The rule file in its folder. */
const RULES = "rules.yaml";

/** Options of a prometheus. */
interface PrometheusOptions {
  /** `host:port` of the metrics, of one or of several. */
  readonly target: string | readonly string[];
  /** The text of a rule file, which is evaluated each second. */
  readonly rules?: string;
  /** Further flags of its command. */
  readonly flags?: readonly string[];
}

/** A sample as the query API answers it: the labels, and the value as text. */
interface PrometheusSample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: string;
}

/** An exemplar as its API answers it. */
interface PrometheusExemplar {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
}

/** Starts a Prometheus of the test's own that scrapes a target each second. */
export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const folder = await Deno.makeTempDir({ prefix: "weir_prometheus_" });
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: options.rules === undefined ? [] : [RULES],
    scrape_configs: [{ job_name: "weir", static_configs: [{ targets: [options.target].flat() }] }],
  };
  if (options.rules !== undefined) await Deno.writeTextFile(join(folder, RULES), options.rules);
  // JSON is YAML, too.
  await Deno.writeTextFile(join(folder, "prometheus.yml"), JSON.stringify(config));
  const address = `127.0.0.1:${freePort()}`;
  const child = new ChildProcess(requireTool("prometheus"), {
    args: [
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "storage")}`,
      `--web.listen-address=${address}`,
      ...options.flags ?? [],
    ],
  });
  const prometheus = new Prometheus(`http://${address}`, async () => {
    await child.kill();
    await Deno.remove(folder, { recursive: true });
  });
  await until("Prometheus", async () => !child.running || await prometheus.isReady());
  if (child.running) return prometheus;
  await prometheus[Symbol.asyncDispose]();
  throw new Error(`Cannot start "prometheus": it ended: ${child.stderrLines.slice(-3).join("; ")}`);
}

/** A running Prometheus; killed at the end of an `await using`. */
export class Prometheus implements AsyncDisposable {
  readonly #url: string;
  readonly #end: () => Promise<void>;

  constructor(url: string, end: () => Promise<void>) {
    this.#url = url;
    this.#end = end;
  }

  /** Returns whether it answers. */
  async isReady(): Promise<boolean> {
    const response = await fetch(`${this.#url}/-/ready`);
    await response.body?.cancel();
    return response.ok;
  }

  async query(query: string): Promise<readonly PrometheusSample[]> {
    const { data: { result } } = await this.#ask<QueryAnswer>(`query?query=${encodeURIComponent(query)}`);
    return result.map(({ metric, value: [, value] }) => ({ metric, value }));
  }

  /**
   * The results of these queries, once all of them have one: not before the first scrape, nor while a late scrape
   * has left nothing.
   */
  async answers(queries: readonly string[]): Promise<readonly (readonly PrometheusSample[])[]> {
    return await until("answers to all queries", async () => {
      const seen = await Promise.all(queries.map((query) => this.query(query)));
      return seen.every((samples) => samples.length > 0) && seen;
    });
  }

  /** The exemplars of these series of the last minutes. */
  async exemplars(query: string): Promise<readonly PrometheusExemplar[]> {
    const [start, end] = [-600, 60].map((seconds) => Math.floor(Date.now() / 1_000) + seconds);
    const path = `query_exemplars?query=${encodeURIComponent(query)}&start=${start}&end=${end}`;
    const { data } = await this.#ask<ExemplarAnswer>(path);
    return data.flatMap(({ exemplars }) => exemplars);
  }

  async #ask<Answer>(path: string): Promise<Answer> {
    const response = await fetch(`${this.#url}/api/v1/${path}`);
    if (response.ok) return await response.json();
    throw new Error(`Cannot query "${path}": ${await response.text()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}

interface ExemplarAnswer {
  readonly data: readonly { readonly exemplars: readonly PrometheusExemplar[] }[];
}

interface QueryAnswer {
  readonly data: {
    readonly result: readonly { metric: Readonly<Record<string, string>>; value: [number, string] }[];
  };
}

/** Runs promtool with this input; answers its exit code and all that it printed. */
export async function promtool(
  args: readonly string[],
  input = "",
): Promise<{ readonly code: number; readonly output: string }> {
  const child = new Deno.Command(requireTool("promtool"), {
    args: [...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const fed = writer.write(new TextEncoder().encode(input)).then(() => writer.close());
  const { code, stdout, stderr } = await child.output();
  await fed;
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

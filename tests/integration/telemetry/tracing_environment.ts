import process from "node:process";
import type { ExporterHandle } from "../../../src/telemetry/tracing_export_supervisor.ts";

type Variables = Readonly<Record<string, string>>;

let variables: Variables = {};

/**
 * Variables of the environment, from which the exporters read; put back at the end of a `using`. Only this thread and the
 * workers that it starts see them: the environment of the process belongs to the tests of other files as well.
 */
export class EnvironmentOf implements Disposable {
  readonly #before = { get: Deno.env.get, env: process.env };

  constructor(given: Variables) {
    variables = given;
    setEnvironment(given);
  }

  [Symbol.dispose](): void {
    variables = {};
    Deno.env.get = this.#before.get;
    process.env = this.#before.env;
  }
}

/** Adds variables to the environment that this thread sees. */
export function setEnvironment(given: Variables): void {
  const { get } = Deno.env;
  process.env = { ...process.env, ...given };
  Deno.env.get = (name) => given[name] ?? get.call(Deno.env, name);
}

/** Starts a worker that exports spans with the environment of this thread. */
export function startExporter(): ExporterHandle {
  const module = new URL("./span_export_worker.ts", import.meta.url);
  return new Worker(module, { type: "module", name: JSON.stringify(variables) });
}

import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

// Two of them at the same time share nothing without hot restart, so no base id has to differ.
const FLAGS = ["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"];

/** Checks a configuration without starting it; answers what is wrong with it, or nothing. */
export async function validateEnvoyConfig(config: object): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "weir_envoy_" });
  try {
    const path = join(folder, "envoy.json");
    await Deno.writeTextFile(path, JSON.stringify(config));
    await using child = new ChildProcess(requireTool("envoy"), { args: ["--mode", "validate", "-c", path] });
    const { code } = await child.exited;
    return code === 0 ? "" : child.stderrLines.join("\n");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Starts Envoy with a configuration in its JSON form, without an `admin` block: the admin port is put in
 * here, on a free port of the loopback address. Listeners may ask for port 0 as well.
 */
export async function startEnvoy(config: object): Promise<Envoy> {
  const folder = await Deno.makeTempDir({ prefix: "weir_envoy_" });
  const path = join(folder, "envoy.json");
  const address = { socket_address: { address: "127.0.0.1", port_value: 0 } };
  await Deno.writeTextFile(path, JSON.stringify({ ...config, admin: { address } }));
  const adminFile = join(folder, "admin");
  const args = ["-c", path, "--admin-address-path", adminFile, ...FLAGS];
  const envoy = new Envoy(new ChildProcess(requireTool("envoy"), { args }), folder);
  try {
    await envoy.ready(adminFile);
    return envoy;
  } catch (error) {
    await envoy[Symbol.asyncDispose]();
    throw error;
  }
}

/** A running Envoy; killed at the end of an `await using`. */
export class Envoy implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #listeners = new Map<string, string>();
  #admin = "";

  constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
  }

  /** Lines of its log so far. */
  get stderrLines(): readonly string[] {
    return this.#child.stderrLines;
  }

  /** The address of a listener of the configuration: `host:port`. */
  address(listener: string): string {
    const address = this.#listeners.get(listener);
    if (address === undefined) {
      throw new Error(`Cannot find the listener "${listener}": Envoy has none of that name`);
    }
    return address;
  }

  /** Its counters by name. */
  async stats(): Promise<Readonly<Record<string, number>>> {
    const response = await fetch(`http://${this.#admin}/stats?usedonly&type=Counters`);
    const lines = (await response.text()).trim().split("\n");
    return Object.fromEntries(lines.map((line) => {
      const [name = "", value = ""] = line.split(": ");
      return [name, Number(value)];
    }));
  }

  /** Waits until Envoy serves, and learns where its listeners are. */
  async ready(adminFile: string): Promise<void> {
    await until("Envoy to be ready", async () => !this.#child.running || await this.#learn(adminFile));
    if (this.#child.running) return;
    throw new Error(`Cannot start "envoy": it ended:\n${this.stderrLines.join("\n")}`);
  }

  /** Asks it to end and waits until it has. */
  async stop(): Promise<void> {
    await this.#child.stop();
  }

  /** Ends it without asking. */
  async kill(): Promise<void> {
    await this.#child.kill();
  }

  /** Kills it and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #learn(adminFile: string): Promise<boolean> {
    const admin = (await Deno.readTextFile(adminFile)).trim();
    this.#admin = admin;
    const state = await fetch(`http://${admin}/ready`);
    await state.body?.cancel();
    if (state.status !== 200) return false;
    const answer = await fetch(`http://${admin}/listeners`);
    for (const line of (await answer.text()).trim().split("\n")) {
      const [name = "", address = ""] = line.split("::");
      this.#listeners.set(name, address);
    }
    return true;
  }
}

import { parse } from "yaml";
import { type Envoy, startEnvoy } from "./envoy.ts";
import { ServeFixture, type ServeFixtureOptions } from "./serve_fixture.ts";

/** Addresses of the peers of an Envoy: `host:port` each. */
export interface EnvoyPlaces {
  readonly weir: string;
  readonly upstream: string;
}

/** A configuration of Envoy that comes with Weir, with these places and with changes. */
export function shippedConfig(
  { weir, upstream }: EnvoyPlaces,
  change: (key: unknown, value: unknown) => unknown,
  file: "envoy.yaml" | "envoy-quota.yaml" = "envoy.yaml",
): object {
  const shipped = Deno.readTextFileSync(new URL(`../../config/deploy/${file}`, import.meta.url));
  const port = (address: string) => Number(address.split(":").at(-1));
  const ports = new Map([[10_000, 0], [3_000, port(upstream)], [8_081, port(weir)]]);
  return parse(shipped, (key, value) => {
    if (key === "port_value") return ports.get(Number(value));
    // A busy machine is no failure.
    if (key === "timeout" || key === "connect_timeout") return "60s";
    return change(key, value);
  });
}

/** Options of an Envoy with its peers. */
interface EnvoyBedOptions extends ServeFixtureOptions {
  /** Makes the configuration. */
  readonly config: (places: EnvoyPlaces) => object;
  /** Answers behind Envoy; with `upstream` when absent. */
  readonly answer?: () => Response | Promise<Response>;
}

/** A server behind an Envoy that asks a Weir. */
export class EnvoyBed implements AsyncDisposable {
  /** A test may put another one into its place. */
  weir: ServeFixture;
  envoy: Envoy;
  readonly #config: object;
  readonly #stack: AsyncDisposableStack;

  private constructor(weir: ServeFixture, envoy: Envoy, config: object, stack: AsyncDisposableStack) {
    this.weir = weir;
    this.envoy = envoy;
    this.#config = config;
    this.#stack = stack;
  }

  /** Starts all three. */
  static async start({ config, answer, ...options }: EnvoyBedOptions): Promise<EnvoyBed> {
    await using stack = new AsyncDisposableStack();
    const weir = await ServeFixture.start(options);
    const all = { weir };
    stack.defer(() => all.weir[Symbol.asyncDispose]());
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const upstream = stack.use(Deno.serve(quiet, answer ?? (() => new Response("upstream"))));
    const places = { weir: weir.grpcAddress, upstream: `127.0.0.1:${upstream.addr.port}` };
    const configured = config(places);
    const envoy = stack.use(await startEnvoy(configured));
    const bed = new EnvoyBed(weir, envoy, configured, stack.move());
    bed.#stack.defer(() => void (all.weir = bed.weir));
    return bed;
  }

  /** Starts another Envoy in the place of one that has ended. */
  async restartEnvoy(): Promise<void> {
    this.envoy = this.#stack.use(await startEnvoy(this.#config));
  }

  /** Asks a listener of Envoy. */
  async fetch(listener: string, path: string, init: RequestInit = {}): Promise<Response> {
    const address = this.envoy.address(listener).replace("0.0.0.0", "127.0.0.1");
    return await fetch(`http://${address}${path}`, init);
  }

  /** The status that a listener answers. */
  async status(listener: string, path: string, init: RequestInit = {}): Promise<number> {
    const response = await this.fetch(listener, path, init);
    await response.body?.cancel();
    return response.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

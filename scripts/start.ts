/**
 * What `deno task start` runs: the service with the embedded cache and the rules of `config/rules`,
 * unless the environment says otherwise, and a line to try it with. Statistics are pushed nowhere unless
 * the environment names a receiver.
 */
import { main, type Running } from "../main.ts";

const DEFAULTS: Readonly<Record<string, string>> = {
  BACKEND_TYPE: Deno.env.get("KV_URL") ? "kv" : "memory",
  RUNTIME_ROOT: new URL("../config", import.meta.url).pathname,
  RUNTIME_APPDIRECTORY: "rules",
  RUNTIME_WATCH_ROOT: "false",
};

/** Whoever tries Weir has no receiver of statistics; whoever names one is taken at their word. */
function statsDefaults(environment: Readonly<Record<string, string>>): Record<string, string> {
  const isNamed = Object.keys(environment).some((name) => /^(?:USE_|PUSH_|PULL_|TAGGED_)/.test(name));
  return isNamed ? {} : { DISABLE_STATS: "true" };
}

/** The address as a client on this machine writes it. */
function reachable(address: string): string {
  return address.replace(/^(0\.0\.0\.0|\[::\]):/, "localhost:");
}

function welcome({ addresses }: Running): void {
  const http = reachable(addresses.http);
  console.log(`
Weir is ready.
  gRPC   ${reachable(addresses.grpc)}
  HTTP   http://${http}/json
  debug  http://${reachable(addresses.debug)}/

Ask for a decision; the sixth time within a minute it is 429:

  curl -i http://${http}/json -d '{"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"bob"}]}]}'
`);
}

if (import.meta.main) {
  const environment = { ...Deno.env.toObject() };
  const defaults = { ...DEFAULTS, ...statsDefaults(environment) };
  for (const [name, value] of Object.entries(defaults)) {
    if ((environment[name] ?? "") === "") environment[name] = value;
  }
  Deno.exit(await main(["serve", ...Deno.args], { environment, onReady: welcome }));
}

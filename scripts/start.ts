/**
 * The start task: runs the service with the embedded cache, the rules of `config/rules`, the workflows of
 * `config/workflows` and the webhook store in `data`, unless the environment has other settings, and prints what is
 * open and commands to try it. Statistics are pushed only if the environment names a receiver.
 */
import { join } from "node:path";
import { main, type Running } from "../main.ts";
import { standardOutput } from "../src/base/standard_streams.ts";
import { isGivenAs } from "../src/settings/aliases.ts";
import { matchLimit } from "../src/ratelimit/rules/match_rules.ts";
import { NO_RULES, type RateLimit, type RuleLevel, type Rules } from "../src/ratelimit/rules/rules.ts";
import { limitText } from "../src/ratelimit/rules/rules_text.ts";
import { parseBackendType } from "../src/settings/cache_table.ts";
import { isGiven } from "../src/settings/secret_files.ts";

const LOOPBACK = "127.0.0.0/8,::1/128";
const TOKEN_BYTES = 32;
/** Domains that the text names; more are counted. */
const MAX_DOMAINS = 5;
const ROOT = new URL("..", import.meta.url).pathname;
const TOKEN_FILE = join(ROOT, "data/admin-token");

/** The interfaces of the ports. */
const HOSTS = ["HOST", "GRPC_HOST", "DEBUG_HOST"] as const;

const DEFAULTS: Readonly<Record<string, string>> = {
  // A trial is not reachable from the network.
  ...Object.fromEntries(HOSTS.map((name) => [name, "127.0.0.1"])),
  // A second start would take some of the calls of the first, with another token.
  LISTEN_SHARED: "false",
  BACKEND_TYPE: isGivenAs(Deno.env.toObject(), "KV_URL") ? "kv" : "memory",
  RUNTIME_ROOT: join(ROOT, "config"),
  RUNTIME_APPDIRECTORY: "rules",
  RUNTIME_WATCH_ROOT: "false",
  WEBHOOK_STORE: join(ROOT, "data/weir.db"),
  WORKFLOW_DIRECTORY: join(ROOT, "config/workflows"),
  // For receivers on this machine.
  WEBHOOK_ALLOW_CIDRS: LOOPBACK,
  WORKFLOW_ALLOW_CIDRS: LOOPBACK,
};

/** Turns statistics off unless the environment has a setting for them. */
function statsDefaults(environment: Readonly<Record<string, string>>): Record<string, string> {
  const isNamed = Object.keys(environment).some((name) =>
    /^(?:USE_|PUSH_|PULL_|TAGGED_|OTEL_METRICS_|STATSD_|DOG_STATSD_|PROMETHEUS_)/.test(name)
  );
  return isNamed ? {} : { DISABLE_STATS: "true" };
}

/** The administration token, which the first start creates and reports. */
function adminToken(path: string): string {
  Deno.mkdirSync(join(path, ".."), { recursive: true });
  const token = crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)).toBase64({
    alphabet: "base64url",
    omitPadding: true,
  });
  try {
    Deno.writeTextFileSync(path, `${token}\n`, { createNew: true, mode: 0o600 });
    standardOutput.stdout(`Created the administration token: ${path}`);
    return token;
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    return Deno.readTextFileSync(path).trim();
  }
}

/** The address as a client on this machine writes it. */
function reachable(address: string): string {
  return address.replace(/^(0\.0\.0\.0|\[::\])?:/, "localhost:");
}

/** The place of the counters. The address may contain a password. */
function cacheText(environment: Readonly<Record<string, string>>): string {
  const type = parseBackendType(environment["BACKEND_TYPE"] ?? "").value;
  if (type === "memory") return "memory of this process; set KV_URL for redis";
  return type === "mc" ? "memcached" : "the server of KV_URL";
}

/** The domains with rules, and where the rules come from. */
function rulesText(domains: readonly string[], environment: Readonly<Record<string, string>>): string {
  const shown = domains.slice(0, MAX_DOMAINS).join(", ");
  const more = domains.length - MAX_DOMAINS;
  const named = domains.length === 0 ? "none" : `${shown}${more > 0 ? ` and ${more} more` : ""}`;
  if (environment["CONFIG_TYPE"] === "GRPC_XDS_SOTW") return `${named}; from the configuration server`;
  const path = ["RUNTIME_ROOT", "RUNTIME_SUBDIRECTORY", "RUNTIME_APPDIRECTORY"].map((name) =>
    environment[name] ?? ""
  );
  return `${named}; from ${join(...path)}`;
}

/** A value for a level of a rule. */
function exampleValue({ value, pattern, match }: RuleLevel): string {
  if (match !== undefined) return "in" in match ? match.in[0] ?? "" : match.regex;
  if (value === "") return "bob";
  return pattern === undefined ? value : value.replaceAll("*", "1");
}

/** The body of a call that a limit decides, quoted for a shell; nothing if another rule decides, or none refuses. */
function exampleBody(limit: RateLimit, { domains }: Rules): string | undefined {
  const { rule, unlimited, shadowMode, quotaMode } = limit;
  if (rule === undefined || unlimited || shadowMode || quotaMode) return undefined;
  const entries = rule.path.map((level) => ({ key: level.key, value: exampleValue(level) }));
  if (matchLimit(domains.get(rule.domain) ?? new Map(), entries) !== limit) return undefined;
  const body = JSON.stringify({ domain: rule.domain, descriptors: [{ entries }] });
  return `'${body.replaceAll("'", `'\\''`)}'`;
}

/** A decision to request by the rules in force. */
function exampleText(rules: Rules, url: string): string {
  for (const limit of rules.limits) {
    const body = exampleBody(limit, rules);
    if (body === undefined) continue;
    return `Request decisions; more than ${limitText(limit)} return 429:\n\n  curl -i ${url} -d ${body}`;
  }
  return "There are no rules that refuse requests: see docs/rules.md.";
}

function welcome(
  { addresses, rules }: Running,
  environment: Readonly<Record<string, string>>,
  tokenFile: string | undefined,
): void {
  const inForce = rules() ?? NO_RULES;
  const isOpen = HOSTS.some((name) => environment[name] !== DEFAULTS[name]);
  const opening = `To open it to others, set ${HOSTS.join(", ")} to 0.0.0.0.`;
  const hint = isOpen ? "" : `\nOnly this machine can reach it. ${opening}\n`;
  const scheme = environment["HTTP_SERVER_USE_TLS"] === "true" ? "https" : "http";
  const http = `${scheme}://${reachable(addresses.http)}`;
  const separate = environment["ADMIN_ADDR"] ?? "";
  const api = separate === "" ? http : `http://${reachable(separate)}`;
  const debug = `http://${reachable(addresses.debug)}`;
  const token = tokenFile === undefined ? "$ADMIN_TOKEN" : `$(cat '${tokenFile}')`;
  standardOutput.stdout(`
Weir is ready.
  gRPC      ${reachable(addresses.grpc)}
  HTTP      ${http}/json
  debug     ${debug}/
  page      ${debug}/ui
  webhooks  ${api}/api/v1
  token     ${tokenFile ?? "that of ADMIN_TOKEN"}
  rules     ${rulesText([...inForce.domains.keys()], environment)}
  cache     ${cacheText(environment)}
${hint}
${exampleText(inForce, `${http}/json`)}

Administer webhooks on the page, which asks for the token, or by the API:

  curl -H "Authorization: Bearer ${token}" ${api}/api/v1/endpoints
`);
}

if (import.meta.main) {
  const environment = { ...Deno.env.toObject() };
  const defaults = { ...DEFAULTS, ...statsDefaults(environment) };
  for (const [name, value] of Object.entries(defaults)) {
    if (!isGivenAs(environment, name)) environment[name] = value;
  }
  const isTokenGiven = isGiven(environment, "ADMIN_TOKEN");
  const tokenFile = isTokenGiven ? environment["ADMIN_TOKEN_FILE"] || undefined : TOKEN_FILE;
  if (!isTokenGiven) environment["ADMIN_TOKEN"] = adminToken(TOKEN_FILE);
  Deno.exit(
    await main(["serve", ...Deno.args], {
      environment,
      onReady: (running) => welcome(running, environment, tokenFile),
    }),
  );
}

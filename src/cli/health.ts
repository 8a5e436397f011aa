import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { collectBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { HealthState } from "../base/health.ts";
import { errorText } from "../base/error_text.ts";
import { hostPort } from "../base/host_port.ts";
import { parseHttpUrl } from "../settings/address_parsers.ts";
import { SERVER_TABLE } from "../settings/server_table.ts";
import type { Parsed } from "../settings/setting.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../wire/health.ts";
import { callUnary, type GrpcServer, readServer } from "./client.ts";
import {
  CommandError,
  type CommandOptions,
  type GivenCommand,
  type GivenFlags,
  readText,
  type RunnableCommand,
} from "./command.ts";
import { FlagError, parseTimeout } from "./flags.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { plainText, shortened } from "./plain_text.ts";

/** `weir health`: whether a service should be sent requests. */
export const HEALTH_COMMAND: RunnableCommand = {
  command: {
    words: "health",
    args: [],
    doc: "check whether a service is healthy",
    flags: {
      url: {
        value: "URL",
        doc: "URL of the health check (default: /healthcheck at HOST and PORT of the environment)",
      },
      addr: {
        value: "ADDRESS",
        aliases: ["grpc"],
        doc: "check over gRPC without TLS instead of HTTP: host:port or unix:/path",
      },
      ca: {
        value: "FILE",
        doc:
          "PEM file with the certificate authorities to trust instead of the system's; requires an https --url",
      },
      strict: { doc: "end with 1 when the service is degraded; HTTP only" },
      timeout: { value: "DURATION", doc: "timeout of the check (default 5s)" },
      ...OUTPUT_FLAGS,
    },
    notes:
      "Without --url, the command reads HOST, PORT and HTTP_SERVER_USE_TLS, as the service does, and not WEIR_URL.\n" +
      "With HTTP_SERVER_USE_TLS=true, the default URL is https. Its certificate is then not verified, because it is\n" +
      "issued for another host name.",
    exitCodes: { 0: "healthy", 1: "failing, degraded with --strict, or no response" },
  },
  run,
};

const PAGE = "/healthcheck";
const MAX_BYTES = 64 * 1_024;
const MAX_SHOWN = 2_000;
const METHOD = "/grpc.health.v1.Health/Check";
const TIMEOUT_MS = 5_000;
/** The address to call where a service listens on every interface. */
const ANY_HOST: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

async function run({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const printer = printerOf(flags, options.output);
  const timeoutMs = flags.value("timeout", parseTimeout) ?? TIMEOUT_MS;
  const grpc = readGrpc(flags);
  const { place, state, text } = grpc === undefined
    ? await askByHttp(await pageOf(flags, options), { ...options, timeoutMs })
    : await askByGrpc(grpc, timeoutMs);
  const isGood = state === "ok" || (state === "degraded" && flags.boolean("strict") !== true);
  if (printer !== undefined) {
    printer.print({ healthy: state !== "failing", state, target: place, text });
    return isGood ? 0 : 1;
  }
  // The "OK" of a degraded service is no part of its causes.
  if (!isGood) throw new CommandError(`The service at "${place}" is ${state}: ${text.replace(/^OK; /, "")}`);
  options.output.stdout(text);
  return 0;
}

/** The server of `--addr`. */
function readGrpc(flags: GivenFlags): GrpcServer | undefined {
  const address = flags.text("addr");
  if (address === undefined) return undefined;
  if (flags.boolean("strict") === true) throw new FlagError("Cannot use --strict with --addr");
  const other = ["url", "ca"].find((name) => flags.text(name) !== undefined);
  if (other !== undefined) throw new FlagError(`Cannot use --${other} with --addr`);
  return readServer(address);
}

async function pageOf(flags: GivenFlags, options: CommandOptions): Promise<HealthPage> {
  const given = flags.text("url");
  const file = flags.text("ca");
  const url = given === undefined ? ownPage(options) : urlOf(given);
  if (file !== undefined && (given === undefined || url.protocol !== "https:")) {
    throw new FlagError("Cannot use --ca: it requires an https --url");
  }
  const ca = file === undefined ? undefined : await readText(file, options);
  return { url, ca, isOwn: given === undefined };
}

function urlOf(text: string): URL {
  const parsed = parseHttpUrl(text);
  // The text may hold a password, so it is not shown.
  if ("expected" in parsed) throw new FlagError(`Invalid --url: expected ${parsed.expected}`);
  const url = new URL(parsed.value);
  if (url.username !== "" || url.password !== "") {
    throw new FlagError("Invalid --url: expected no user name and password");
  }
  if (url.pathname === "/" && url.search === "") url.pathname = PAGE;
  return url;
}

/** The health page of the service with the settings of this environment, on its HTTP port or its debug port. */
function ownPage(
  { environment }: Pick<CommandOptions, "environment">,
  { isDebug = false }: { readonly isDebug?: boolean } = {},
): URL {
  const read = <T>(name: keyof typeof SERVER_TABLE, parse: (text: string) => Parsed<T>, unset: string): T => {
    const parsed = parse(environment[name] || unset);
    if ("value" in parsed) return parsed.value;
    throw new FlagError(`Invalid ${name} "${environment[name]}": expected ${parsed.expected}`);
  };
  const { HOST, PORT, DEBUG_HOST, DEBUG_PORT, HTTP_SERVER_USE_TLS } = SERVER_TABLE;
  if (isDebug) {
    const debugHost = read("DEBUG_HOST", DEBUG_HOST.parse, DEBUG_HOST.default);
    return pageAt("http", debugHost, read("DEBUG_PORT", DEBUG_PORT.parse, DEBUG_PORT.default));
  }
  const port = read("PORT", PORT.parse, PORT.default);
  if (port === 0) {
    throw new FlagError('Invalid PORT "0": the service takes a free port; set --url');
  }
  const host = read("HOST", HOST.parse, HOST.default);
  const isTls = read("HTTP_SERVER_USE_TLS", HTTP_SERVER_USE_TLS.parse, HTTP_SERVER_USE_TLS.default);
  return pageAt(isTls ? "https" : "http", host, port);
}

function pageAt(scheme: "http" | "https", host: string, port: number): URL {
  return new URL(`${scheme}://${hostPort({ host: ANY_HOST[host] ?? host, port })}${PAGE}`);
}

/** While a service waits to start, only its debug port is open, which has the reason. */
async function askByHttp(
  page: HealthPage,
  options: CommandOptions & { readonly timeoutMs: number },
): Promise<HealthAnswer> {
  try {
    return await askHealthPage(page, options);
  } catch (error) {
    if (!page.isOwn || !errorText(error).includes("ECONNREFUSED")) throw error;
    const url = ownPage(options, { isDebug: true });
    const answer = await askHealthPage({ ...page, url }, options).catch(() => undefined);
    if (answer?.state !== "failing") throw error;
    return answer;
  }
}

async function askByGrpc(server: GrpcServer, timeoutMs: number): Promise<HealthAnswer> {
  const response = await callUnary({
    ...server,
    timeoutMs,
    tls: undefined,
    method: METHOD,
    request: HEALTH_CHECK_REQUEST.encode({ service: "" }),
    decode: (bytes) => HEALTH_CHECK_RESPONSE.decode(bytes),
  });
  const name = Object.entries(SERVING_STATUS).find(([, status]) => status === response.status)?.[0];
  const text = name ?? `status ${response.status}`;
  return { place: server.name, state: name === "SERVING" ? "ok" : "failing", text };
}

interface HealthPage {
  readonly url: URL;
  /** Trusted certificates; without them the usual ones, and any for our own service. */
  readonly ca: string | undefined;
  readonly isOwn: boolean;
}

interface HealthAnswer {
  /** Who answered. */
  readonly place: string;
  readonly state: HealthState;
  readonly text: string;
}

/**
 * Asks by `node:http`, which ignores the proxies of the environment. Throws a `CommandError` without a timely
 * answer.
 */
async function askHealthPage(
  page: HealthPage,
  { timeoutMs, clock }: { readonly timeoutMs: number; readonly clock: Clock },
): Promise<HealthAnswer> {
  const overdue = new AbortController();
  const cancel = clock.after(timeoutMs, () => overdue.abort());
  try {
    const response = await asked(page, overdue.signal);
    return { place: page.url.href, ...answerOf(response.statusCode ?? 0, await bodyOf(response)) };
  } catch (error) {
    const reason = overdue.signal.aborted ? `no whole answer within ${timeoutMs} ms` : errorText(error);
    throw new CommandError(`Cannot query "${page.url.href}": ${plainText(reason)}`, { cause: error });
  } finally {
    cancel();
    overdue.abort();
  }
}

function asked({ url, ca, isOwn }: HealthPage, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { agent: false, signal, headers: { accept: "text/plain" } } as const;
    const tls = ca === undefined ? { rejectUnauthorized: !isOwn } : { ca };
    const request = url.protocol === "https:"
      ? requestTls(url, { ...options, ...tls }, resolve)
      : requestPlain(url, options, resolve);
    request.on("error", reject);
    request.end();
  });
}

async function bodyOf(response: AsyncIterable<Uint8Array>): Promise<string> {
  const bytes = await collectBytes(response, MAX_BYTES);
  if (bytes === undefined) throw new Error(`its answer is longer than ${MAX_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}

function answerOf(status: number, body: string): Omit<HealthAnswer, "place"> {
  const lines = body.split("\n").map((line) => plainText(line.trim())).filter((line) => line !== "");
  const text = shortened(lines.join("; "), MAX_SHOWN);
  if (status === 200) return { state: lines.length > 1 ? "degraded" : "ok", text };
  return { state: "failing", text: text === "" ? `${status}` : `${status}: ${text}` };
}

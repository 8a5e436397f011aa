import { errorText } from "../base/error_text.ts";
import { hostPort } from "../base/host_port.ts";
import { parseHttpUrl } from "../settings/parsers.ts";
import { SERVER_TABLE } from "../settings/server_table.ts";
import type { Parsed } from "../settings/setting.ts";
import { decodeHealthCheckResponse, encodeHealthCheckRequest, SERVING_STATUS } from "../wire/health.ts";
import type { GivenCommand, GivenFlags, RunnableCommand } from "./command.ts";
import { CommandError, type CommandOptions, readText } from "./command_input.ts";
import { FlagError } from "./flags.ts";
import { askHealthPage, type HealthAnswer, type HealthPage } from "./health_page.ts";
import { readTimeout } from "./timeout_flag.ts";

/** `weir health`: whether a service should be sent requests, for whoever starts and restarts it. */
export const HEALTH_COMMAND: RunnableCommand = {
  command: {
    words: "health",
    args: [],
    doc: "asks a service whether it is healthy",
    flags: {
      url: {
        value: "URL",
        doc: "its health page (default /healthcheck at HOST and PORT of this environment)",
      },
      grpc: { value: "ADDRESS", doc: "ask by gRPC in place of HTTP: host:port or unix:/path, plain text" },
      ca: { value: "FILE", doc: "with an https --url: certificates to trust in place of the usual ones" },
      timeout: { value: "DURATION", doc: "how long to wait for the answer (default 5s)" },
    },
    notes:
      "With HTTP_SERVER_USE_TLS=true the default is https, and its certificate is not looked at: it is for another name.\n\n" +
      "exit code: 0 healthy, 1 not healthy or no answer, 2 wrong usage",
  },
  run,
};

const PAGE = "/healthcheck";
const METHOD = "/grpc.health.v1.Health/Check";
const DEFAULT_TIMEOUT = "5s";
/** What stands for every interface where a service listens, and what of it a caller may name. */
const ANY_HOST: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

async function run({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const timeoutMs = readTimeout(flags.text("timeout") ?? DEFAULT_TIMEOUT);
  const grpc = flags.text("grpc");
  if (grpc !== undefined) checkGrpc(grpc, flags);
  const page = grpc === undefined ? await pageOf(flags, options) : undefined;
  const place = grpc ?? page?.url.href ?? "";
  const answer = page === undefined
    ? await askByGrpc(place, timeoutMs)
    : await askHealthPage(page, { timeoutMs, clock: options.clock });
  if (!answer.isHealthy) throw new CommandError(`Cannot count on "${place}": ${answer.text}`);
  options.output.stdout(answer.text);
  return 0;
}

function checkGrpc(address: string, flags: GivenFlags): void {
  const other = ["url", "ca"].find((name) => flags.text(name) !== undefined);
  if (other !== undefined) throw new FlagError(`Cannot use --${other}: it has no meaning with --grpc`);
  if (/^unix:.+|^.+:\d+$/s.test(address)) return;
  throw new FlagError(`Cannot use --grpc "${address}": host:port or unix:/path would be right`);
}

async function pageOf(flags: GivenFlags, options: CommandOptions): Promise<HealthPage> {
  const given = flags.text("url");
  const file = flags.text("ca");
  const url = given === undefined ? ownPage(options) : urlOf(given);
  if (file !== undefined && (given === undefined || url.protocol !== "https:")) {
    throw new FlagError("Cannot use --ca: it has a meaning only with an https --url");
  }
  const ca = file === undefined ? undefined : await readText(file, options);
  return { url, ca, isOwn: given === undefined };
}

function urlOf(text: string): URL {
  const parsed = parseHttpUrl(text);
  // What is refused may hold a password, so it is not shown.
  if ("wanted" in parsed) throw new FlagError(`Cannot use --url: ${parsed.wanted} would be right`);
  const url = new URL(parsed.value);
  if (url.username !== "" || url.password !== "") {
    throw new FlagError("Cannot use --url: it holds a user name or password, which no health page wants");
  }
  if (url.pathname === "/" && url.search === "") url.pathname = PAGE;
  return url;
}

/** Where the service listens whose settings these are. */
function ownPage({ environment }: CommandOptions): URL {
  const read = <T>(name: keyof typeof SERVER_TABLE, parse: (text: string) => Parsed<T>, unset: string): T => {
    const parsed = parse(environment[name] || unset);
    if ("value" in parsed) return parsed.value;
    throw new FlagError(`Cannot use ${name} "${environment[name]}": ${parsed.wanted} would be right`);
  };
  const { HOST, PORT, HTTP_SERVER_USE_TLS } = SERVER_TABLE;
  const port = read("PORT", PORT.parse, PORT.default);
  if (port === 0) {
    throw new FlagError('Cannot use PORT "0": the service takes a free one then, and --url has to name it');
  }
  const host = read("HOST", HOST.parse, HOST.default);
  const isTls = read("HTTP_SERVER_USE_TLS", HTTP_SERVER_USE_TLS.parse, HTTP_SERVER_USE_TLS.default);
  const name = ANY_HOST[host] ?? host;
  return new URL(`http${isTls ? "s" : ""}://${hostPort({ host: name, port })}${PAGE}`);
}

/** Asks for the health of the server as a whole. */
async function askByGrpc(address: string, timeoutMs: number): Promise<HealthAnswer> {
  // Loaded here, so that the gRPC library is where it is asked for alone.
  const { callUnary } = await import("./client.ts");
  const response = await callUnary({
    ...{ address, timeoutMs, tls: undefined, method: METHOD },
    request: encodeHealthCheckRequest({ service: "" }),
    decode: decodeHealthCheckResponse,
  }).catch((error: unknown) => {
    throw new CommandError(errorText(error), { cause: error });
  });
  const name = Object.entries(SERVING_STATUS).find(([, status]) => status === response.status)?.[0];
  const text = name ?? `status ${response.status}`;
  return { isHealthy: name === "SERVING", text };
}

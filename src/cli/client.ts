import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type DialAddress, dialAddressOf } from "../base/host_port.ts";
import { readAuthorities, readTlsPair } from "../net/tls_files.ts";
import type { GrpcConnection } from "../grpc/client/grpc_connection.ts";
import { GrpcError } from "../grpc/grpc_service.ts";
import { unitOfNumber } from "../ratelimit/units.ts";
import { parseDialTarget } from "../settings/address_parsers.ts";
import { integer } from "../settings/parsers.ts";
import {
  HEALTH_CHECK_REQUEST,
  HEALTH_CHECK_RESPONSE,
  serviceOfDomain,
  SERVING_STATUS,
} from "../wire/health.ts";
import {
  decodeRateLimitResponse,
  encodeRateLimitRequest,
  RATE_LIMIT_PATH,
  type WireDescriptorStatus,
  type WireEntry,
  type WireRateLimitResponse,
} from "../wire/rls.ts";
import {
  CommandError,
  type CommandFlag,
  type CommandOptions,
  type GivenCommand,
  type GivenFlags,
  type RunnableCommand,
} from "./command.ts";
import { FlagError, parseTimeout } from "./flags.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { plainText } from "./plain_text.ts";

/** The flags of a connection over TLS. */
export const TLS_FLAGS: Readonly<Record<keyof TlsFiles | "tls", CommandFlag>> = {
  tls: { doc: "connect over TLS" },
  ca: {
    value: "FILE",
    doc: "PEM file with the certificate authorities to trust instead of the system's; requires --tls",
  },
  cert: { value: "FILE", doc: "PEM file with the client certificate; requires --tls and --key" },
  key: {
    value: "FILE",
    doc: "PEM file with the private key of the client certificate; requires --tls and --cert",
  },
};

/** `weir client`: asks for one decision over gRPC and prints it. */
export const CLIENT_COMMAND: RunnableCommand = {
  command: {
    words: "client",
    args: [],
    doc: "request one rate limit decision over gRPC",
    flags: {
      addr: {
        value: "ADDRESS",
        aliases: ["dial_string"],
        doc: "address of the gRPC port: host:port, [::1]:port or unix:/path (default localhost:8081)",
      },
      domain: { value: "NAME", doc: "domain of the rules (required)" },
      descriptors: {
        value: "LIST",
        repeated: true,
        doc: "one descriptor: key=value,key=value (required); a value with a comma requires /json",
      },
      "hits-addend": { value: "N", doc: "number of hits to add (default 1)" },
      timeout: { value: "DURATION", doc: "timeout of the call (default 10s)" },
      ...TLS_FLAGS,
      ...OUTPUT_FLAGS,
    },
    exitCodes: { 0: "OK", 1: "the call failed", 3: "OVER_LIMIT" },
  },
  run,
};

const OVER_LIMIT = 3;
const TIMEOUT_MS = 10_000;
const HEALTH_METHOD = "/grpc.health.v1.Health/Check";
const CODES = ["UNKNOWN", "OK", "OVER_LIMIT"];
/** A connection fails so to a port of another kind, or of a server that requires a client certificate. */
const OTHER_PORT = /EPIPE|ECONNRESET|reset by peer|broken pipe|the server (?:closed|does not speak HTTP\/2)/i;
/** A server without TLS answers a handshake like this. */
const PLAIN_ANSWER = /InvalidContentType|wrong version number/i;
/** The remainder where nothing limits: the largest unsigned 32-bit integer. */
const UNLIMITED = 4_294_967_295;

async function run({ flags }: GivenCommand, { output }: CommandOptions): Promise<number> {
  const printer = printerOf(flags, output);
  const domain = flags.required("domain", "client");
  const descriptors = flags.descriptors();
  if (descriptors.length === 0) throw new FlagError('Cannot run "client": --descriptors is missing');
  const hitsAddend = flags.value("hits-addend", integer({ min: 0, max: UNLIMITED })) ?? 1;
  const server = {
    ...readServer(flags.text("addr") ?? "localhost:8081"),
    timeoutMs: flags.value("timeout", parseTimeout) ?? TIMEOUT_MS,
    tls: readTls(flags),
  };
  const response = await callUnary({
    ...server,
    method: RATE_LIMIT_PATH,
    request: encodeRateLimitRequest({
      domain,
      descriptors: descriptors.map((entries) => ({ entries })),
      hitsAddend,
    }),
    decode: decodeRateLimitResponse,
  });
  const unknownDomain = response.statuses.every(isWithoutRule) && await isUnknown(domain, server);
  if (printer !== undefined) {
    printer.print({ ...answerValue(descriptors, response), ...unknownDomain ? { unknownDomain } : {} });
  } else {
    for (const line of answerLines(descriptors, response)) output.stdout(line);
    if (unknownDomain) {
      output.stdout(`the domain ${JSON.stringify(domain)} is unknown: no rules are loaded for it`);
    }
  }
  const code = codeName(response.overallCode);
  return code === "OK" ? 0 : code === "OVER_LIMIT" ? OVER_LIMIT : 1;
}

function isWithoutRule({ currentLimit, limitRemaining }: WireDescriptorStatus): boolean {
  return currentLimit === undefined && limitRemaining !== UNLIMITED;
}

/** Returns whether the server reports that it has no rules for a domain; another server than Weir does not know. */
async function isUnknown(
  domain: string,
  server: Pick<UnaryCall<unknown>, "name" | "address" | "timeoutMs" | "tls">,
): Promise<boolean> {
  const answer = await callUnary({
    ...server,
    method: HEALTH_METHOD,
    request: HEALTH_CHECK_REQUEST.encode({ service: serviceOfDomain(domain) }),
    decode: (bytes) => HEALTH_CHECK_RESPONSE.decode(bytes),
  }).catch(() => undefined);
  return answer?.status === SERVING_STATUS.SERVICE_UNKNOWN;
}

/** A gRPC server to call. */
export interface GrpcServer {
  /** The address as it was given. */
  readonly name: string;
  readonly address: DialAddress;
}

/** Reads the address of a gRPC server; throws a `FlagError` for one that cannot be dialled. */
export function readServer(text: string): GrpcServer {
  const parsed = parseDialTarget(text);
  if ("value" in parsed) return { name: text, address: dialAddressOf(parsed.value) };
  throw new FlagError(`Invalid --addr "${text}": expected host:port or unix:/path`);
}

/** The files of the flags of TLS; undefined without TLS. */
export function readTls(flags: GivenFlags): TlsFiles | undefined {
  const files = { ca: flags.text("ca"), cert: flags.text("cert"), key: flags.text("key") };
  const isTls = flags.boolean("tls") === true;
  const given = Object.entries(files).find(([, path]) => path !== undefined)?.[0];
  if (!isTls && given !== undefined) throw new FlagError(`Cannot use --${given}: it requires --tls`);
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw new FlagError("Cannot use a client certificate: --cert and --key belong together");
  }
  return isTls ? files : undefined;
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** A call of one method, for one answer. */
interface UnaryCall<Answer> extends GrpcServer {
  readonly method: string;
  readonly request: Uint8Array;
  readonly decode: (bytes: Uint8Array) => Answer;
  readonly timeoutMs: number;
  readonly tls: TlsFiles | undefined;
}

/**
 * Calls a method; throws a `CommandError` when there is no answer. Loads the gRPC client, so that other commands start
 * without it.
 */
export async function callUnary<Answer>(call: UnaryCall<Answer>): Promise<Answer> {
  const startedAt = systemClock.elapsed();
  await using connection = await openConnection(call);
  const timeoutMs = call.timeoutMs - (systemClock.elapsed() - startedAt);
  const bytes = await connection.unary(call.method, call.request, { timeoutMs })
    .catch((error: unknown) => {
      throw callError(call, errorText(error), error);
    });
  try {
    return call.decode(bytes);
  } catch (error) {
    throw callError(call, `the answer cannot be read: ${errorText(error)}`, error);
  }
}

async function openConnection(
  call: Pick<UnaryCall<unknown>, "name" | "address" | "timeoutMs" | "tls">,
): Promise<GrpcConnection> {
  const tls = call.tls === undefined ? undefined : await readTlsFiles(call.tls);
  const { GrpcConnection } = await import("../grpc/client/grpc_connection.ts");
  const target = { address: call.address, tls };
  return await GrpcConnection.open(target, { connectTimeoutMs: call.timeoutMs })
    .catch((error: unknown) => {
      throw callError(call, connectProblem(errorText(error)), error);
    });
}

function callError({ name }: GrpcServer, reason: string, cause: unknown): CommandError {
  const code = cause instanceof GrpcError ? cause.code : "INTERNAL";
  return new CommandError(`Cannot call "${name}": ${code}: ${plainText(reason)}`, { cause });
}

/** Why there is no connection, with the next step where there is one. */
function connectProblem(reason: string): string {
  if (/^(?:connection refused$|no connection)/.test(reason)) return reason;
  if (PLAIN_ANSWER.test(reason)) {
    return "no connection: the port does not use TLS; remove --tls, or correct the address";
  }
  const hint = OTHER_PORT.test(reason)
    ? "; is it a gRPC port, and does it use TLS? See --tls and --cert"
    : "";
  return `no connection: ${reason}${hint}`;
}

/** The content of the files, in PEM. */
type TlsTexts = Readonly<Record<keyof TlsFiles, string | undefined>>;

/** Reads and checks the files; throws a `CommandError` for one that cannot be used. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsTexts> {
  try {
    return await tlsTextsOf(files);
  } catch (error) {
    throw new CommandError(errorText(error), { cause: error, isUsage: true });
  }
}

async function tlsTextsOf({ ca, cert, key }: TlsFiles): Promise<TlsTexts> {
  const authorities = ca === undefined ? undefined : await readAuthorities("--ca", ca);
  const pair = cert === undefined || key === undefined
    ? undefined
    : await readTlsPair({ cert, key }, { cert: "--cert", key: "--key" });
  return { ca: authorities?.join("\n"), cert: pair?.cert, key: pair?.key };
}

function answerLines(
  descriptors: readonly (readonly WireEntry[])[],
  response: WireRateLimitResponse,
): string[] {
  const statuses = response.statuses.map((status, index) => {
    const entries = descriptors[index] ?? [];
    const name = entries.map(({ key, value }) => `${key}=${value}`).join(",");
    return `descriptor ${name}: ${statusText(status)}`;
  });
  const headers = response.responseHeadersToAdd.map(({ key, value }) => `header ${key}: ${value}`);
  const metadata = response.dynamicMetadata === undefined
    ? []
    : [`dynamic metadata: ${JSON.stringify(response.dynamicMetadata)}`];
  return [`overall code: ${codeName(response.overallCode)}`, ...statuses, ...headers, ...metadata];
}

/** The answer for programs. */
function answerValue(
  descriptors: readonly (readonly WireEntry[])[],
  { overallCode, statuses, responseHeadersToAdd, dynamicMetadata }: WireRateLimitResponse,
): object {
  return {
    overallCode: codeName(overallCode),
    descriptors: statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }, index) => ({
      entries: descriptors[index] ?? [],
      code: codeName(code),
      limit: currentLimit && {
        requestsPerUnit: currentLimit.requestsPerUnit,
        unit: currentLimit.unit === 0 ? undefined : unitOfNumber(currentLimit.unit),
        name: currentLimit.name === "" ? undefined : currentLimit.name,
      },
      unlimited: currentLimit === undefined && limitRemaining === UNLIMITED ? true : undefined,
      remaining: currentLimit === undefined ? undefined : limitRemaining,
      secondsUntilReset: currentLimit === undefined ? undefined : secondsUntilReset,
    })),
    headers: responseHeadersToAdd,
    dynamicMetadata,
  };
}

function statusText(status: WireDescriptorStatus): string {
  const { currentLimit, limitRemaining, secondsUntilReset } = status;
  const code = codeName(status.code);
  if (currentLimit === undefined) {
    return `${code}, ${limitRemaining === UNLIMITED ? "unlimited" : "no limit"}`;
  }
  const name = currentLimit.name === "" ? "" : ` (${currentLimit.name})`;
  const limit = `limit ${currentLimit.requestsPerUnit} ${unitText(currentLimit.unit)}${name}`;
  const reset = secondsUntilReset === undefined ? "" : `, reset in ${secondsUntilReset} s`;
  return `${code}, ${limit}, remaining ${limitRemaining}${reset}`;
}

/** Unit 0, which is `UNKNOWN`, is that of limits of hits in flight. */
function unitText(number: number): string {
  return number === 0 ? "in flight" : `per ${unitOfNumber(number) ?? `unit ${number}`}`;
}

function codeName(code: number): string {
  return CODES[code] ?? `code ${code}`;
}

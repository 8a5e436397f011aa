import type { ChannelCredentials, ServiceError } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { parseDescriptorText } from "../ratelimit/request.ts";
import { unitOfNumber } from "../ratelimit/limit.ts";
import {
  decodeRateLimitResponse,
  encodeRateLimitRequest,
  type WireDescriptorStatus,
  type WireEntry,
  type WireRateLimitResponse,
} from "../wire/rls.ts";
import { asksForHelp, FlagError, HELP_FLAGS, parseFlags } from "./flags.ts";
import type { Output } from "./output.ts";
import { readTimeout } from "./timeout_flag.ts";

const FLAGS = {
  dial_string: "string",
  domain: "string",
  descriptors: "strings",
  hits_addend: "string",
  timeout: "string",
  tls: "boolean",
  ca: "string",
  cert: "string",
  key: "string",
  ...HELP_FLAGS,
} as const;

const USAGE = `usage: weir client -domain NAME -descriptors KEY=VALUE[,KEY=VALUE...] [flags]

Asks a rate limit service for one decision and prints it.

  -dial_string ADDRESS  host:port, [::1]:port or unix:/path (default localhost:8081)
  -domain NAME          domain of the rules
  -descriptors LIST     one descriptor: comma-separated key=value pairs; repeat the flag for further ones
  -hits_addend N        hits to add (default 1)
  -timeout DURATION     how long to wait for the answer (default 10s)
  -tls                  speak TLS
  -ca FILE              with -tls: certificates to trust in place of the system's
  -cert FILE            with -tls: client certificate, together with -key
  -key FILE             with -tls: private key of the client certificate
  -help                 this text

exit code: 0 OK, 3 OVER_LIMIT, 1 no answer, 2 wrong usage`;

const EXIT = { ok: 0, failed: 1, usage: 2, overLimit: 3 } as const;
const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CODES = ["UNKNOWN", "OK", "OVER_LIMIT"];
/** Errors of connecting to an address where nothing listens; a unix socket without its file is one, too. */
const NOBODY_THERE = /\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOENT|ETIMEDOUT)\b/;
/** What the service answers as remaining where nothing limits: the largest unsigned 32-bit integer. */
const UNLIMITED = 4_294_967_295;

/** The test client: asks for one decision over gRPC, prints it, and answers the exit code. */
export async function client(args: readonly string[], io: Output): Promise<number> {
  let call: Call | undefined;
  try {
    call = readCall(args);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    io.stderr(`${error.message}\n\n${USAGE}`);
    return EXIT.usage;
  }
  if (call === undefined) {
    io.stdout(USAGE);
    return EXIT.ok;
  }
  try {
    const response = await ask(call);
    for (const line of answerLines(call, response)) io.stdout(line);
    return exitCode(response.overallCode);
  } catch (error) {
    io.stderr(errorText(error));
    return EXIT.failed;
  }
}

/** What the command line asks for. */
interface Call {
  readonly address: string;
  readonly domain: string;
  readonly descriptors: readonly (readonly WireEntry[])[];
  readonly hitsAddend: number;
  readonly timeoutMs: number;
  /** Absent for plain text. */
  readonly tls: TlsFiles | undefined;
}

/** Files of TLS, in PEM. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Absent when the usage was asked for. */
function readCall(args: readonly string[]): Call | undefined {
  const { flags, rest } = parseFlags(args, FLAGS);
  if (asksForHelp(flags)) return undefined;
  if (rest.length > 0) throw new FlagError(`Cannot use argument "${rest[0]}": only flags are taken`);
  const text = (name: keyof typeof FLAGS): string | undefined => {
    const value = flags[name];
    return typeof value === "string" ? value : undefined;
  };
  const domain = text("domain");
  if (domain === undefined) throw new FlagError("Cannot ask for a decision: -domain is missing");
  const lists = Array.isArray(flags.descriptors) ? flags.descriptors : [];
  if (lists.length === 0) throw new FlagError("Cannot ask for a decision: -descriptors is missing");
  return {
    address: readAddress(text("dial_string") ?? "localhost:8081"),
    domain,
    descriptors: lists.map(readDescriptor),
    hitsAddend: readHits(text("hits_addend") ?? "1"),
    timeoutMs: readTimeout(text("timeout") ?? "10s", "-timeout"),
    tls: readTls(flags.tls === true, { ca: text("ca"), cert: text("cert"), key: text("key") }),
  };
}

function readAddress(address: string): string {
  if (/^unix:.+|^.+:\d+$/s.test(address)) return address;
  throw new FlagError(`Cannot use -dial_string "${address}": host:port or unix:/path would be right`);
}

function readDescriptor(list: string): WireEntry[] {
  const entries = parseDescriptorText(list);
  if (typeof entries === "string") throw new FlagError(`Cannot use -descriptors "${list}": ${entries}`);
  return entries;
}

function readHits(text: string): number {
  const hits = /^\d+$/.test(text) ? Number(text) : NaN;
  if (hits <= 4_294_967_295) return hits;
  throw new FlagError(`Cannot use -hits_addend "${text}": a number from 0 to 4294967295 would be right`);
}

function readTls(asked: boolean, files: TlsFiles): TlsFiles | undefined {
  const given = Object.entries(files).find(([, path]) => path !== undefined)?.[0];
  if (!asked && given !== undefined) {
    throw new FlagError(`Cannot use -${given}: it has a meaning only with -tls`);
  }
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw new FlagError("Cannot use a client certificate: -cert and -key belong together");
  }
  return asked ? files : undefined;
}

async function ask(call: Call): Promise<WireRateLimitResponse> {
  const request = encodeRateLimitRequest({
    domain: call.domain,
    descriptors: call.descriptors.map((entries) => ({ entries })),
    hitsAddend: call.hitsAddend,
  });
  return await callUnary({ ...call, method: METHOD, request, decode: decodeRateLimitResponse });
}

/** A call of one method, for one answer. */
export interface UnaryCall<Answer> {
  /** `host:port` or `unix:/path`. */
  readonly address: string;
  /** Such as `/package.Service/Method`. */
  readonly method: string;
  readonly request: Uint8Array;
  readonly decode: (bytes: Uint8Array) => Answer;
  readonly timeoutMs: number;
  /** Absent for plain text. */
  readonly tls: TlsFiles | undefined;
}

/** Makes a call; throws one line when there is no answer. The gRPC library is loaded here, so that other commands start without it. */
export async function callUnary<Answer>(call: UnaryCall<Answer>): Promise<Answer> {
  const grpc = await import("@grpc/grpc-js");
  let credentials: ChannelCredentials = grpc.credentials.createInsecure();
  if (call.tls !== undefined) {
    const { ca, cert, key } = call.tls;
    credentials = grpc.credentials.createSsl(await readPem(ca), await readPem(key), await readPem(cert));
  }
  // The address that was named is meant, not a proxy that the environment names.
  const peer = new grpc.Client(call.address, credentials, { "grpc.enable_http_proxy": 0 });
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const options = { deadline: systemClock.now() + call.timeoutMs };
      const done = (error: ServiceError | null, answer?: Answer) => {
        if (answer !== undefined) return resolve(answer);
        const code = error === null ? "UNKNOWN" : grpc.status[error.code];
        const reason = error === null ? "no answer" : reasonOf(error.details);
        reject(new Error(`Cannot ask "${call.address}": ${code}: ${reason}`, { cause: error }));
      };
      const metadata = new grpc.Metadata();
      peer.makeUnaryRequest(
        call.method,
        (bytes: Buffer) => bytes,
        call.decode,
        Buffer.from(call.request),
        metadata,
        options,
        done,
      );
    });
  } finally {
    peer.close();
  }
}

/** Why there was no answer. Of a connection that failed the library tells more than helps, and less plainly. */
function reasonOf(details: string): string {
  const text = details.replace(/\. Resolution note: *$/, "");
  const fault = /^No connection established\. Last error: (?:Error: )?(.+)$/s.exec(text)?.[1];
  if (fault === undefined) return text;
  return NOBODY_THERE.test(fault) ? `nobody answers there: ${fault}` : `no connection: ${fault}`;
}

async function readPem(path: string | undefined): Promise<Buffer | null> {
  if (path === undefined) return null;
  try {
    return Buffer.from(await Deno.readFile(path));
  } catch (error) {
    const reason = errorText(error);
    throw new Error(`Cannot read "${path}": ${reason}`, { cause: error });
  }
}

function answerLines(call: Call, response: WireRateLimitResponse): string[] {
  const statuses = response.statuses.map((status, index) => {
    const entries = call.descriptors[index] ?? [];
    const name = entries.map(({ key, value }) => `${key}=${value}`).join(",");
    return `descriptor ${name}: ${statusText(status)}`;
  });
  const headers = response.responseHeadersToAdd.map(({ key, value }) => `header ${key}: ${value}`);
  const metadata = response.dynamicMetadata === undefined
    ? []
    : [`dynamic metadata: ${JSON.stringify(response.dynamicMetadata)}`];
  return [`overall code: ${codeName(response.overallCode)}`, ...statuses, ...headers, ...metadata];
}

function statusText(status: WireDescriptorStatus): string {
  const { currentLimit, limitRemaining, secondsUntilReset } = status;
  const code = codeName(status.code);
  if (currentLimit === undefined) {
    return `${code}, ${limitRemaining === UNLIMITED ? "unlimited" : "no limit"}`;
  }
  const unit = unitOfNumber(currentLimit.unit) ?? `unit ${currentLimit.unit}`;
  const name = currentLimit.name === "" ? "" : ` (${currentLimit.name})`;
  const limit = `limit ${currentLimit.requestsPerUnit} per ${unit}${name}`;
  const reset = secondsUntilReset === undefined ? "" : `, reset in ${secondsUntilReset} s`;
  return `${code}, ${limit}, remaining ${limitRemaining}${reset}`;
}

function codeName(code: number): string {
  return CODES[code] ?? `code ${code}`;
}

function exitCode(overallCode: number): number {
  if (codeName(overallCode) === "OK") return EXIT.ok;
  return codeName(overallCode) === "OVER_LIMIT" ? EXIT.overLimit : EXIT.failed;
}

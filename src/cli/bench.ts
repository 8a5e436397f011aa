import type { DialAddress } from "../base/host_port.ts";
import { seededRandom } from "../base/seeded_random.ts";
import type { CallSource } from "../load/call_source.ts";
import type { Entry } from "../ratelimit/request.ts";
import { float, integer } from "../settings/parsers.ts";
import { encodeRateLimitRequest } from "../wire/rls.ts";
import { type BenchReport, noCallsText, reportLines, reportValue } from "./bench_report.ts";
import { readServer, readTls, readTlsFiles, TLS_FLAGS, type TlsFiles } from "./client.ts";
import {
  CommandError,
  type CommandOptions,
  type GivenCommand,
  type GivenFlags,
  type RunnableCommand,
} from "./command.ts";
import { FlagError } from "./flags.ts";
import { Interruption } from "./interruption.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";

/** Limits of a run, so that a mistake does not overload a service for long. */
const MAX_SECONDS = 600;
const MAX_WARM_UP_SECONDS = 60;
const MAX_CONNECTIONS = 1_000;
const MAX_IN_FLIGHT = 16_384;
const MAX_RATE = 1_000_000;
const MAX_KEYS = 10_000_000;

/** Replaced by `k0`, `k1` and so on in the descriptors. */
const KEY = "{key}";
/** The requests of the project's own bench. */
const DEFAULTS = {
  domain: "bench",
  descriptors: [[{ key: "load", value: "keys" }, { key: "key", value: KEY }]],
} as const;

/** `weir bench`: puts load on a running service. */
export const BENCH_COMMAND: RunnableCommand = {
  command: {
    words: "bench",
    args: [],
    doc: "put load on a running service, and print its throughput and latency",
    flags: {
      addr: {
        value: "ADDRESS",
        doc: "address of the gRPC port: host:port, [::1]:port or unix:/path (required)",
      },
      seconds: { value: "N", doc: `measured time (default 10, at most ${MAX_SECONDS})` },
      "warm-up": {
        value: "N",
        doc: `seconds of load before the measured time (default 1, at most ${MAX_WARM_UP_SECONDS})`,
      },
      connections: { value: "N", doc: `number of connections (default 8, at most ${MAX_CONNECTIONS})` },
      "in-flight": {
        value: "N",
        doc: `calls in flight on each connection (default 32; in total at most ${MAX_IN_FLIGHT})`,
      },
      rate: {
        value: "N",
        doc:
          "calls per second at a constant rate, timed from when they are due (default: a call for each response)",
      },
      domain: { value: "NAME", doc: `domain of the rules (default ${DEFAULTS.domain})` },
      descriptors: {
        value: "LIST",
        repeated: true,
        doc: `one descriptor: key=value,key=value, with ${KEY} for a key (default load=keys,key=${KEY})`,
      },
      keys: {
        value: "N",
        doc: `number of keys, which the calls use in turn (default 10000, at most ${MAX_KEYS})`,
      },
      seed: { value: "N", doc: "choose keys at random with this seed, instead of in turn" },
      ...TLS_FLAGS,
      ...OUTPUT_FLAGS,
    },
    notes:
      "Every call is a real request: its hits count in the counters and statistics of the service, and can\n" +
      "exceed limits of other callers. Use a domain or keys of a test.\n\n" +
      "SIGINT or SIGTERM ends the run and prints the results so far. A constant rate keeps a core busy.",
    exitCodes: { 0: "every call was answered", 1: "calls failed" },
  },
  run,
};

interface BenchTask {
  readonly address: string;
  readonly peerAddress: DialAddress;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly connections: number;
  readonly inFlight: number;
  readonly rate: number | undefined;
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
  readonly keys: number;
  readonly seed: number | undefined;
  readonly tls: TlsFiles | undefined;
}

async function run({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const printer = printerOf(flags, options.output);
  const task = taskOf(flags);
  const peer = {
    address: task.peerAddress,
    tls: task.tls === undefined ? undefined : await readTlsFiles(task.tls),
  };
  // Loaded here, so that other commands start without it.
  const [{ CallSource }, { DecisionTally }, { runLoad }] = await Promise.all([
    import("../load/call_source.ts"),
    import("../load/decision_tally.ts"),
    import("../load/run_load.ts"),
  ]);
  const source = sourceOf(task, CallSource);
  const tally = new DecisionTally(task.descriptors.length);
  using interruption = new Interruption(options.stop);
  const { signal } = interruption;
  options.output.stderr(startLine(task));
  const { connections, inFlight, warmUpSeconds, seconds, rate } = task;
  const { result, durations } = await runLoad({
    peer,
    source,
    connections,
    inFlight,
    warmUpSeconds,
    seconds,
    perSecond: rate,
    stop: signal,
    checkMessage: (body) => tally.add(body),
  });
  const report: BenchReport = { ...task, result, durations, tally, isInterrupted: signal.aborted };
  if (result.calls === 0) throw new CommandError(noCallsText(report));
  if (printer !== undefined) printer.print(reportValue(report));
  else for (const line of reportLines(report)) options.output.stdout(line);
  return Object.keys(result.errors).length === 0 ? 0 : 1;
}

function taskOf(flags: GivenFlags): BenchTask {
  const address = flags.required("addr", "bench");
  const given = flags.descriptors();
  const descriptors = given.length === 0 ? DEFAULTS.descriptors : given;
  const hasKey = descriptors.flat().some(({ key, value }) => key.includes(KEY) || value.includes(KEY));
  const keyFlag = ["keys", "seed"].find((name) => flags.text(name) !== undefined);
  if (!hasKey && keyFlag !== undefined) {
    throw new FlagError(`Cannot use --${keyFlag}: no descriptor contains ${KEY}`);
  }
  const connections = flags.value("connections", integer({ min: 1, max: MAX_CONNECTIONS })) ?? 8;
  const inFlight = flags.value("in-flight", integer({ min: 1, max: MAX_IN_FLIGHT })) ?? 32;
  if (connections * inFlight > MAX_IN_FLIGHT) {
    throw new FlagError(
      `Cannot use ${connections} connections with ${inFlight} calls in flight each: expected at most ` +
        `${MAX_IN_FLIGHT} calls in total; set --in-flight`,
    );
  }
  const tls = readTls(flags);
  if (tls !== undefined && address.startsWith("unix:")) {
    throw new FlagError("Cannot use --tls: a unix socket has no TLS");
  }
  return {
    address,
    descriptors,
    connections,
    inFlight,
    tls,
    peerAddress: readServer(address).address,
    seconds: flags.value("seconds", float({ min: 0.1, max: MAX_SECONDS })) ?? 10,
    warmUpSeconds: flags.value("warm-up", float({ min: 0, max: MAX_WARM_UP_SECONDS })) ?? 1,
    rate: flags.value("rate", float({ min: 1, max: MAX_RATE })),
    domain: flags.text("domain") ?? DEFAULTS.domain,
    keys: hasKey ? flags.value("keys", integer({ min: 1, max: MAX_KEYS })) ?? 10_000 : 1,
    seed: flags.value("seed", integer({ min: 0, max: 4_294_967_295 })),
  };
}

function sourceOf({ domain, descriptors, keys, seed }: BenchTask, Source: typeof CallSource): CallSource {
  const message = (variant: number) =>
    encodeRateLimitRequest({
      domain,
      descriptors: descriptors.map((entries) => ({
        entries: entries.map(({ key, value }) => {
          const name = `k${variant}`;
          return { key: key.replaceAll(KEY, name), value: value.replaceAll(KEY, name) };
        }),
      })),
    });
  try {
    return new Source({
      variants: keys,
      message,
      random: seed === undefined ? undefined : seededRandom(seed),
    });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new FlagError(`Invalid --descriptors: ${error.message}`, { cause: error });
  }
}

function startLine({ address, connections, inFlight, rate, seconds, warmUpSeconds }: BenchTask): string {
  const speed = rate === undefined ? "" : `, ${rate} calls/s`;
  return `Calling ${address} for ${warmUpSeconds} s + ${seconds} s: ${connections} x ${inFlight} calls${speed}`;
}

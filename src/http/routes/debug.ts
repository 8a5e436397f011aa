import { Session } from "node:inspector/promises";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { Clock } from "../../base/clock.ts";
import { waitUnlessAborted } from "../../base/wait.ts";
import { bearerGuard } from "./bearer_token.ts";
import { healthRoutes, type ShownHealth } from "./healthcheck.ts";
import { invalidParameter } from "../server/problem.ts";
import { hostGuard, ownSiteGuard } from "../server/request_guards.ts";
import {
  type Call,
  createRouter,
  type HttpHandler,
  type Route,
  type RouterOptions,
} from "../server/router.ts";

/** A path of the debug port and the sentence that lists it. */
export interface DebugRoute extends Route {
  readonly help: string;
  /** Served without the token: probes, and paths that show nothing of the service or check a token themselves. */
  readonly open?: true;
}

/** Options of `createDebugHandler`. */
export interface DebugOptions extends RouterOptions {
  readonly rlconfig: () => string;
  readonly stats: () => string | Promise<string>;
  readonly health: ShownHealth;
  /** Bearer token that the list of paths, health and open paths do not require; none when absent. */
  readonly token?: string | undefined;
  /** Names that may address the port, in addition to loopback names and IP addresses; none when absent. */
  readonly allowedHosts?: readonly string[];
  readonly routes?: readonly DebugRoute[];
}

const METHODS = ["GET", "HEAD"] as const;
const PPROF = "/debug/pprof/";
const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 300;
/** Time between two samples, in microseconds. */
const SAMPLING_INTERVAL_US = 1_000;

/** The handler of the debug port. `/` lists its paths. */
export function createDebugHandler(options: DebugOptions): HttpHandler {
  const ofKnownHosts = hostGuard(options.allowedHosts ?? []);
  const [healthcheck, livez] = healthRoutes(options.health);
  // Container and cluster names work for probes.
  const probes: DebugRoute[] = [
    { ...healthcheck, help: "200 and the causes of a degraded state, or 503 and why", open: true },
    { ...livez, help: "200 while the process responds", open: true },
  ];
  const further = debugRoutes(options);
  const list = [...probes, ...further].map(({ path, help }) => `${path}: ${help}\n`).sort().join("");
  const index: DebugRoute = { ...textRoute("/", "the list of paths", () => list), open: true };
  const guarded = [index, ...further].map((route) => {
    const { path, methods, handle } = withToken(route, options.token);
    return { path, methods, handle: ofKnownHosts(ofOwnSite(handle)) };
  });
  const open = probes.map((route) => ({ ...route, handle: ofOwnSite(route.handle) }));
  return createRouter([...open, ...guarded], options);
}

const ofOwnSite = ownSiteGuard({ links: true });

function withToken(route: DebugRoute, token: string | undefined): DebugRoute {
  const isOpen = token === undefined || route.open === true;
  return isOpen ? route : { ...route, handle: bearerGuard(token)(route.handle) };
}

function debugRoutes(options: DebugOptions): DebugRoute[] {
  const profiling = profilingRoutes(options.clock);
  const index = profiling.map(({ path, help }) => `${path}: ${help}\n`).sort().join("");
  return [
    textRoute("/rlconfig", "the active rules", options.rlconfig),
    textRoute("/stats", "every counter and gauge", options.stats),
    textRoute(PPROF, "list of profiles", () => index),
    ...profiling,
    ...options.routes ?? [],
  ];
}

function profilingRoutes(clock: Clock): DebugRoute[] {
  const profiler = new CpuProfiler();
  return [
    textRoute(`${PPROF}heap`, "statistics of the JavaScript heap", heapText),
    textRoute(`${PPROF}memory`, "memory of the process and of the machine", memoryText),
    {
      path: `${PPROF}profile`,
      methods: METHODS,
      help:
        `a CPU profile as a .cpuprofile file, ?seconds=1 to ${MAX_SECONDS}, ${DEFAULT_SECONDS} when absent`,
      handle: (call) => profileAnswer(call, profiler, clock),
    },
  ];
}

function textRoute(path: string, help: string, text: () => string | Promise<string>): DebugRoute {
  return { path, methods: METHODS, help, handle: async () => new Response(await text()) };
}

async function profileAnswer(call: Call, profiler: CpuProfiler, clock: Clock): Promise<Response> {
  const seconds = secondsOf(call.url.searchParams);
  if (seconds === undefined) {
    return call.refuse(invalidParameter("seconds", `must be a whole number from 1 to ${MAX_SECONDS}`));
  }
  const headers = {
    "content-type": "application/json",
    "content-disposition": `attachment; filename="weir-${seconds}s.cpuprofile"`,
  };
  if (call.request.method === "HEAD") return new Response(null, { headers });
  if (profiler.recording) {
    return call.refuse({ kind: "conflict", reason: "another CPU profile is being recorded" });
  }
  const signals = [call.request.signal, call.closing];
  const profile = await profiler.record(seconds * 1_000, clock, signals);
  // Ended early: the client has left, or the listener has already answered.
  if (profile === undefined) return new Response(null, { status: 503 });
  return new Response(profile, { headers });
}

function secondsOf(query: URLSearchParams): number | undefined {
  const text = query.get("seconds");
  if (text === null) return DEFAULT_SECONDS;
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return seconds >= 1 && seconds <= MAX_SECONDS ? seconds : undefined;
}

/** The heap of the JavaScript engine as `name: value` lines, in bytes unless the name says otherwise. */
function heapText(): string {
  const spaces = getHeapSpaceStatistics().map(({ space_name, space_size, space_used_size }) => ({
    [`space.${space_name}.size`]: space_size,
    [`space.${space_name}.used`]: space_used_size,
  }));
  return lines({
    ...prefixed("memory", Deno.memoryUsage()),
    ...prefixed("heap", getHeapStatistics()),
    ...Object.assign({}, ...spaces),
  });
}

/** The memory of the process and of the machine as `name: value` lines, in bytes. */
function memoryText(): string {
  return lines({
    ...prefixed("process", Deno.memoryUsage()),
    ...prefixed("machine", Deno.systemMemoryInfo()),
  });
}

function prefixed(prefix: string, values: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

function lines(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values).map(([name, value]) => `${name}: ${value}\n`).join("");
}

/** Records CPU profiles, one at a time, because the engine has one recorder. */
class CpuProfiler {
  #recording = false;

  get recording(): boolean {
    return this.#recording;
  }

  /** Records the text of a `.cpuprofile` file; undefined when it is cancelled. Throws while another recording runs. */
  async record(
    durationMs: number,
    clock: Clock,
    signals: readonly AbortSignal[],
  ): Promise<string | undefined> {
    if (this.#recording) throw new Error("Cannot record a CPU profile: a recording is under way");
    this.#recording = true;
    const session = new Session();
    try {
      session.connect();
      await session.post("Profiler.enable");
      await session.post("Profiler.setSamplingInterval", { interval: SAMPLING_INTERVAL_US });
      await session.post("Profiler.start");
      const isWhole = await waitUnlessAborted(durationMs, clock, AbortSignal.any([...signals]));
      const { profile } = await session.post("Profiler.stop");
      return isWhole ? JSON.stringify(profile) : undefined;
    } finally {
      session.disconnect();
      this.#recording = false;
    }
  }
}

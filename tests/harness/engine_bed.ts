import { assertEquals } from "#assert";
import type { GrpcEngine, GrpcEngineOptions } from "../../src/grpc/engine.ts";
import { startNative } from "../../src/grpc/native/native_engine.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "./fake_clock.ts";
import { Probe } from "./probe.ts";
import { RawClient, type RawClientOptions } from "./raw_client.ts";

/**
 * A running engine whose clock stands still, and a neighbour on another connection, who at the end must
 * not have noticed anything of what the others did.
 */
export class EngineBed implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly probe: Probe;
  readonly engine: GrpcEngine;
  readonly neighbour: RawClient;
  readonly #log: string[];

  /** Starts the engine on a free port; the neighbour is connected and has made a call. */
  static async open(part: Partial<GrpcEngineOptions> = {}): Promise<EngineBed> {
    const clock = new FakeClock();
    const probe = new Probe();
    const log: string[] = [];
    const engine = await startNative({
      services: [probe.service],
      target: { kind: "tcp", host: "127.0.0.1", port: 0 },
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      logger: createLogger({ level: "debug", format: "text", clock, write: (line) => void log.push(line) }),
      clock,
      random: () => 0.5,
      ...part,
    });
    const tls = part.tls !== undefined;
    const neighbour = await RawClient.connect(engine.address, { settings: [], pong: true, tls });
    await neighbour.echo();
    return new EngineBed({ clock, probe, engine, neighbour, log });
  }

  private constructor(parts: {
    clock: FakeClock;
    probe: Probe;
    engine: GrpcEngine;
    neighbour: RawClient;
    log: string[];
  }) {
    this.clock = parts.clock;
    this.probe = parts.probe;
    this.engine = parts.engine;
    this.neighbour = parts.neighbour;
    this.#log = parts.log;
  }

  /** Another client, with the greetings exchanged unless it is said otherwise. */
  connect(options: RawClientOptions = { settings: [] }): Promise<RawClient> {
    return RawClient.connect(this.engine.address, options);
  }

  /** The messages of the log so far with their fields, which then is empty. */
  takeLog(): string[] {
    return this.#log.splice(0).map((line) => line.replace(/^.*? msg=/, ""));
  }

  /** Asks the neighbour once more, ends everything, and finds no timer and no line of the log left. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.neighbour.echo();
    } finally {
      await this.neighbour[Symbol.asyncDispose]();
      const closed = this.engine.close(0);
      this.clock.advance(1);
      await closed;
    }
    assertEquals([this.#log, this.clock.waiting], [[], 0]);
  }
}

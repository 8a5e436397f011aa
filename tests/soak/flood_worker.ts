/// <reference lib="deno.worker" />
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type FloodKind, FloodSource } from "../harness/h2_floods.ts";
import { greeting } from "../harness/h2_peer.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";

const FRAMES_AT_ONCE = 500;

/** An order for the worker: a flood of a separate connection. */
export interface FloodOrder {
  readonly port: number;
  readonly kinds: readonly FloodKind[];
  readonly seed: number;
  /** The longest that it lasts. */
  readonly seconds: number;
}

/** The result of a flood. */
export interface Flooded {
  readonly frames: number;
  /** The server ended the connection. */
  readonly wasClosed: boolean;
}

self.onmessage = async ({ data }: MessageEvent<FloodOrder>) => self.postMessage(await flood(data));

async function flood({ port, kinds, seed, seconds }: FloodOrder): Promise<Flooded> {
  const random = seededRandom(seed);
  const source = new FloodSource(RATE_LIMIT_PATH);
  const socket = net.connect({ host: "127.0.0.1", port });
  let wasClosed = false;
  socket.on("error", () => {});
  socket.on("data", () => {});
  socket.on("close", () => wasClosed = true);
  socket.write(greeting());
  const end = performance.now() + seconds * 1_000;
  let frames = 0;
  while (!wasClosed && performance.now() < end) {
    socket.write(source.next(kinds, FRAMES_AT_ONCE, random));
    frames += FRAMES_AT_ONCE;
    do await sleep(0); while (socket.writableNeedDrain && !wasClosed && performance.now() < end);
  }
  socket.destroy();
  return { frames, wasClosed };
}

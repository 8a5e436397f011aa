import { Buffer } from "node:buffer";
import dgram from "node:dgram";
import dns from "node:dns/promises";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { settledWithin } from "../base/wait.ts";
import type { Carrier, PushOutage } from "./flush_ports.ts";

/** An Ethernet frame without the headers of IPv6, UDP and a tunnel. */
const PACKET_BYTES = 1_432;
/** A name is looked up again after this time. */
const LOOKUP_AGE_MS = 10_000;
/** Timeouts of a lookup and of the packets of one slice. */
const LOOKUP_MS = 2_000;
const SEND_MS = 5_000;
/** Pause after each slice, some 40 KB, so that the receiver's buffer does not overflow. */
const PAUSE_MS = 1;

/** The receiver, and the parts of the connection to it. */
interface StatsdUdpOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly outage: PushOutage;
}

interface Target {
  readonly address: string;
  readonly family: number;
  readonly foundAt: number;
}

/** Pushes lines over UDP; those that cannot be sent are counted. */
export class StatsdUdp implements Carrier {
  readonly #options: StatsdUdpOptions;
  #target: Target | undefined;
  #socket: dgram.Socket | undefined;
  #linesLost = 0;
  #isClosed = false;

  constructor(options: StatsdUdpOptions) {
    this.#options = options;
  }

  get usable(): boolean {
    return this.#socket !== undefined;
  }

  /** Lines that the system refused to send. */
  get linesLost(): number {
    return this.#linesLost;
  }

  async prepare(): Promise<void> {
    const { clock } = this.#options;
    if (clock.elapsed() - (this.#target?.foundAt ?? -Infinity) < LOOKUP_AGE_MS) return;
    await settledWithin(this.#lookUp(), LOOKUP_MS, clock);
  }

  async send(units: readonly string[]): Promise<void> {
    const { clock } = this.#options;
    await settledWithin(this.#sendAll(statsdPackets(units, PACKET_BYTES)), SEND_MS, clock);
    const pause = Promise.withResolvers<void>();
    clock.after(PAUSE_MS, pause.resolve);
    await pause.promise;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#socket?.close();
    this.#socket = undefined;
    return Promise.resolve();
  }

  async #lookUp(): Promise<void> {
    const { host, clock, outage } = this.#options;
    try {
      // A name may have both, and a receiver is more likely to listen on IPv4.
      const { address, family } = await dns.lookup(host, { order: "ipv4first" });
      if (this.#isClosed) return;
      if (family !== this.#target?.family) this.#open(family);
      this.#target = { address, family, foundAt: clock.elapsed() };
    } catch (error) {
      // The previous address stays in use.
      outage.failed(errorText(error));
    }
  }

  #open(family: number): void {
    this.#socket?.close();
    const socket = dgram.createSocket(family === 6 ? "udp6" : "udp4");
    socket.on("error", (error: Error) => this.#options.outage.failed(error.message));
    this.#socket = socket;
  }

  async #sendAll(packets: readonly string[]): Promise<void> {
    let refusal: string | undefined;
    for (const packet of packets) {
      const reason = await this.#sendOne(packet);
      if (reason === undefined) continue;
      refusal = reason;
      this.#linesLost += packet.split("\n").length;
    }
    if (refusal === undefined) this.#options.outage.worked();
    else this.#options.outage.failed(refusal);
  }

  /** Returns why the packet could not be sent. */
  #sendOne(packet: string): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    try {
      this.#socket?.send(packet, this.#options.port, this.#target?.address ?? "", (error) => {
        resolve(error?.message);
      });
      if (this.#socket === undefined) resolve("it is closed");
    } catch (error) {
      resolve(errorText(error));
    }
    return promise;
  }
}

/** Units joined by line breaks into packets of at most `maxBytes`; a longer unit is a packet by itself. */
export function statsdPackets(units: readonly string[], maxBytes: number): string[] {
  const packets: string[] = [];
  let open: string[] = [];
  let openBytes = 0;
  for (const unit of units) {
    const bytes = Buffer.byteLength(unit) + 1;
    if (open.length > 0 && openBytes + bytes > maxBytes + 1) {
      packets.push(open.join("\n"));
      open = [];
      openBytes = 0;
    }
    open.push(unit);
    openBytes += bytes;
  }
  if (open.length > 0) packets.push(open.join("\n"));
  return packets;
}

import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { type Memcached, startMemcached } from "../../harness/memcached.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { type Env, type SettingCases, SHOP, shopRequest, SLOW_NOON } from "./settings_case.ts";

const SRV = { type: 33, class: 1 };
const HEADER_BYTES = 12;

/** Tests of the SRV record that lists the nodes of the memcached-style cache. */
export const MC_SRV_CASES: SettingCases = {
  MC_SRV: { sees: "the nodes that a record lists", tools: ["memcached"], run: asksListedNode },
  MC_SRV_REFRESH: { sees: "the record looked up again", tools: ["memcached"], run: followsTheRecord },
};

async function asksListedNode(): Promise<void> {
  await using memcached = await startMemcached();
  await using names = await startNameServer(memcached.port);
  await using service = await start({ MC_SRV: "_mc._tcp.weir.test" });
  await until("an answered call", async () => (await service.ask(shopRequest("open=a"))).status === 200);
  assertEquals([names.askedFor("_mc._tcp.weir.test"), await countersOf(memcached)], [1, 1]);

  await using lost = await start({ MC_SRV: "_missing._tcp.weir.test" });
  await until("the log to tell it", () => {
    return lost.log.some((line) =>
      /Cannot look up MC_SRV; retrying" name="_missing\._tcp\.weir\.test"/.test(line)
    );
  });
  assertEquals((await lost.ask(shopRequest("open=a"))).status, 503);
}

async function followsTheRecord(): Promise<void> {
  await using before = await startMemcached();
  await using after = await startMemcached();
  await using names = await startNameServer(before.port);
  await using once = await start({ MC_SRV: "_once._tcp.weir.test" });
  await using again = await start({ MC_SRV: "_again._tcp.weir.test", MC_SRV_REFRESH: "5ms" });
  for (const service of [once, again]) {
    await until("an answered call", async () => (await service.ask(shopRequest("open=a"))).status === 200);
  }
  names.port = after.port;
  await until("a call counted in the new node", async () => {
    await again.ask(shopRequest("open=b"));
    return (await countersOf(after)) > 0;
  });
  assertEquals((await once.ask(shopRequest("open=c"))).status, 200);
  assertEquals([await countersOf(after), names.askedFor("_once._tcp.weir.test")], [1, 1]);
}

async function start(env: Env): Promise<ServeFixture> {
  return await ServeFixture.start({ env: { BACKEND_TYPE: "mc", ...env }, rules: SHOP, clock: SLOW_NOON });
}

async function countersOf(memcached: Memcached): Promise<number> {
  return await memcached.stat("curr_items");
}

/**
 * Starts a name server that lists one node, at this port of 127.0.0.1, under each name but those that
 * begin with `_missing`. Which server is asked is a matter of the machine and no setting, so that the
 * runtime is led to this one until the end of an `await using`.
 */
async function startNameServer(port: number): Promise<NameServer> {
  const server = new NameServer(port);
  await server.listen();
  return server;
}

class NameServer implements AsyncDisposable {
  /** Port of the node that is listed. */
  port: number;
  readonly #socket: Socket = createSocket("udp4");
  readonly #asked: string[] = [];
  readonly #resolve = Deno.resolveDns;

  constructor(port: number) {
    this.port = port;
  }

  /** How often this name was looked up. */
  askedFor(name: string): number {
    return this.#asked.filter((asked) => asked === name).length;
  }

  async listen(): Promise<void> {
    this.#socket.on("message", (query, from) => this.#answer(query, from));
    await new Promise<void>((resolve) => this.#socket.bind(0, "127.0.0.1", () => resolve()));
    const nameServer = { ipAddr: "127.0.0.1", port: this.#socket.address().port };
    const redirected = (name: string, type: "SRV", options: Deno.ResolveDnsOptions) =>
      this.#resolve(name, type, { ...options, nameServer });
    if (!Reflect.set(Deno, "resolveDns", redirected)) throw new Error("Cannot lead look-ups to the test");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    Reflect.set(Deno, "resolveDns", this.#resolve);
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()));
  }

  #answer(query: Buffer, from: RemoteInfo): void {
    const { name, bytes: question } = questionOf(query);
    this.#asked.push(name);
    const records = name.startsWith("_missing") ? [] : [this.#record()];
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    // An answer with authority; without a record, that there is no such name.
    header.writeUInt16BE(records.length === 0 ? 0x8403 : 0x8400, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    this.#socket.send(Buffer.concat([header, question, ...records]), from.port, from.address);
  }

  /** The name of the question by reference, then what the record says; nothing of it is to be kept. */
  #record(): Buffer {
    // An address as a name, so that nothing more has to be looked up.
    const target = Buffer.concat(["127", "0", "0", "1", ""].map(label));
    const fixed = Buffer.alloc(18);
    fixed.writeUInt16BE(0xc000 + HEADER_BYTES, 0);
    fixed.writeUInt16BE(SRV.type, 2);
    fixed.writeUInt16BE(SRV.class, 4);
    fixed.writeUInt16BE(6 + target.length, 10);
    fixed.writeUInt16BE(this.port, 16);
    return Buffer.concat([fixed, target]);
  }
}

function label(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

/** The name that is asked for, and the bytes of the question: labels up to an empty one, type and class. */
function questionOf(query: Buffer): { name: string; bytes: Buffer } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), bytes: query.subarray(HEADER_BYTES, at + 5) };
}

import { assertEquals } from "#assert";
import type { HostAndPort } from "../../../../src/base/host_port.ts";
import { McSrvLookup, type McSrvLookupOptions, type SrvRecord } from "../../../../src/cache/mc/srv_lookup.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

type Answer = readonly SrvRecord[] | Error | "never";

/** Looks up what a test tells it to, in order; the last answer holds on. */
class Lookups {
  readonly clock = new FakeClock();
  readonly lists: string[][] = [];
  readonly told: string[] = [];
  asked: string[] = [];
  readonly #answers: Answer[];

  constructor(...answers: readonly Answer[]) {
    this.#answers = [...answers];
  }

  open(options: Partial<McSrvLookupOptions> = {}): McSrvLookup {
    return new McSrvLookup({
      name: "_mc._tcp.example.com",
      refreshMs: 0,
      clock: this.clock,
      random: () => 1,
      resolveSrv: (name) => {
        this.asked.push(name);
        const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
        if (answer === "never") return new Promise(() => {});
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? []);
      },
      onNodes: (nodes) => void this.lists.push(nodes.map(text)),
      onLookup: (found, reason) => void this.told.push(`${found} ${reason}`),
      ...options,
    });
  }

  /** Lets time pass, and whatever follows from it. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
}

function text({ host, port }: HostAndPort): string {
  return `${host}:${port}`;
}

function records(...texts: readonly string[]): SrvRecord[] {
  return texts.map((one) => {
    const [target = "", port = ""] = one.split(":");
    return { target, port: Number(port) };
  });
}

const SORTED: readonly [name: string, answer: readonly string[], nodes: readonly string[]][] = [
  ["by name", ["b.example.:11211", "a.example.:11211"], ["a.example:11211", "b.example:11211"]],
  ["by port as text", ["a.:9", "a.:11211", "a.:10"], ["a:10", "a:11211", "a:9"]],
  ["with the dot at the end", ["mc0.:1", "mc.:1", "mc-1.:1"], ["mc-1:1", "mc:1", "mc0:1"]],
  ["whether the dot is there or not", ["mc0:1", "mc:1", "mc-1:1"], ["mc-1:1", "mc:1", "mc0:1"]],
  ["without those that name nothing", [".:0", "a.:1"], ["a:1"]],
];

for (const [name, answer, nodes] of SORTED) {
  Deno.test(`mc hosts: nodes are sorted as texts, ${name}`, async () => {
    const lookups = new Lookups(records(...answer));
    const hosts = lookups.open();
    await lookups.pass(0);
    assertEquals(lookups.lists, [nodes]);
    await hosts.close();
  });
}

Deno.test("mc hosts: without a refresh they are looked up once", async () => {
  const lookups = new Lookups(records("a.:1"));
  const hosts = lookups.open();
  await lookups.pass(0);
  assertEquals([lookups.asked, lookups.clock.waiting], [["_mc._tcp.example.com"], 0]);
  await hosts.close();
});

Deno.test("mc hosts: a refresh brings the new list", async () => {
  const lookups = new Lookups(records("a.:1"), records("b.:1", "a.:1"));
  const hosts = lookups.open({ refreshMs: 60_000 });
  await lookups.pass(0);
  await lookups.pass(59_999);
  assertEquals(lookups.lists, [["a:1"]]);
  await lookups.pass(1);
  assertEquals(lookups.lists, [["a:1"], ["a:1", "b:1"]]);
  await hosts.close();
  assertEquals(lookups.clock.waiting, 0);
});

Deno.test("mc hosts: a first look-up that fails is tried again with growing waits, and told once", async () => {
  const failure = new Error("no record found");
  const lookups = new Lookups(failure, failure, failure, records("a.:1"));
  const hosts = lookups.open();
  await lookups.pass(0);
  const asked = [lookups.asked.length];
  for (const wait of [250, 500, 1_000]) {
    await lookups.pass(wait - 1);
    asked.push(lookups.asked.length);
    await lookups.pass(1);
    asked.push(lookups.asked.length);
  }
  assertEquals(asked, [1, 1, 2, 2, 3, 3, 4]);
  assertEquals([lookups.lists, lookups.told], [[["a:1"]], ["false no record found", "true "]]);
  await hosts.close();
});

Deno.test("mc hosts: a refresh that fails keeps the list and is reported once an outage", async () => {
  const failure = new Error("no server answers");
  const lookups = new Lookups(records("a.:1"), failure, failure, [], records("a.:1"), failure, failure);
  const hosts = lookups.open({ refreshMs: 60_000 });
  await lookups.pass(0);
  await lookups.pass(60_000);
  for (let attempt = 0; attempt < 3; attempt++) await lookups.pass(10_000);
  assertEquals(lookups.told, ["false no server answers", "true "]);
  await lookups.pass(60_000);
  assertEquals(lookups.told, ["false no server answers", "true ", "false no server answers"]);
  assertEquals(lookups.lists, [["a:1"], ["a:1"]]);
  await hosts.close();
});

Deno.test("mc hosts: an answer without nodes is a failure", async () => {
  const lookups = new Lookups([]);
  const hosts = lookups.open();
  await lookups.pass(0);
  assertEquals([lookups.lists, lookups.told], [[], ["false the answer names no node"]]);
  await hosts.close();
});

Deno.test("mc hosts: a look-up that never ends is given up, and ends with the hosts", async () => {
  const lookups = new Lookups("never");
  const hosts = lookups.open();
  await lookups.pass(5_000);
  assertEquals(lookups.told, ["false no answer within 5000 ms"]);
  await lookups.pass(250);
  assertEquals(lookups.asked.length, 2);
  await hosts.close();
  assertEquals([lookups.clock.waiting, lookups.told.length], [0, 1]);
});

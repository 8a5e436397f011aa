import { assertEquals, assertThrows } from "#assert";
import type { RulesLoad } from "../../../src/config/provider.ts";
import { createXdsProvider } from "../../../src/config/xds_provider.ts";
import type { XdsStreamEvents } from "../../../src/config/xds_stream.ts";
import type { Problem } from "../../../src/base/problem.ts";
import { DISCOVERY_REQUEST, DISCOVERY_RESPONSE } from "../../../src/wire/discovery.ts";
import { RATE_LIMIT_CONFIG } from "../../../src/wire/rate_limit_config.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RULES_TYPE, shopConfig } from "../../harness/xds_server.ts";
import { settledTurns } from "../../harness/until.ts";

/** A provider whose streams are the test's. */
class Bed {
  readonly clock = new FakeClock(0);
  readonly log = new RecordedLogger();
  /** The events in order: `open`, `close`, requests as `version/nonce` and loads. */
  readonly story: string[] = [];
  /** The problems of a version. */
  readonly wrong = new Map<string, readonly Problem[] | Error>();
  /** Versions that are applied later, when the promise settles. */
  readonly later = new Map<string, Promise<void>>();
  readonly provider = createXdsProvider({
    target: { url: "127.0.0.1:7", headers: new Map(), maxMessageBytes: 1_000 },
    node: { id: "one", metadata: new Map() },
    waits: { retryMs: 3_000, initialMs: 10_000, maxMs: 60_000, spread: 0.5 },
    clock: this.clock,
    random: () => 0.5,
    logger: this.log,
    open: (_, events) => this.#open(events),
  });
  /** Times at which streams were opened. */
  readonly opened: number[] = [];
  /** True if every stream ends as soon as it is opened. */
  isDown = false;
  #events: XdsStreamEvents | undefined;
  #nonces = 0;

  constructor() {
    this.provider.start((load) => this.#load(load));
  }

  /** The server's end of the stream. */
  get events(): XdsStreamEvents {
    if (this.#events === undefined) throw new Error("Cannot use the stream: there is none");
    return this.#events;
  }

  /** Sends a version, with a domain of this name. */
  async send(version: string, domain = "shop", typeUrl = RULES_TYPE): Promise<void> {
    const resources = [{ typeUrl: RULES_TYPE, value: RATE_LIMIT_CONFIG.encode(shopConfig({}, domain)) }];
    const nonce = `n${++this.#nonces}`;
    this.events.onMessage(DISCOVERY_RESPONSE.encode({ versionInfo: version, resources, typeUrl, nonce }));
    await settledTurns();
  }

  take(): string[] {
    return this.story.splice(0);
  }

  /** The server ends the stream, and another one is opened. */
  reopen(): void {
    this.events.onEnd("gone");
    this.clock.advance(3_000);
  }

  #open(events: XdsStreamEvents) {
    this.#events = events;
    this.opened.push(this.clock.now());
    this.story.push("open");
    if (this.isDown) this.clock.after(0, () => events.onEnd("refused"));
    return {
      send: (bytes: Uint8Array) => {
        const { versionInfo, responseNonce, errorDetail } = DISCOVERY_REQUEST.decode(bytes);
        const error = errorDetail === undefined ? "" : ` ${errorDetail.code} ${errorDetail.message}`;
        this.story.push(`${versionInfo}/${responseNonce}${error}`);
      },
      close: () => {
        this.story.push("close");
        return Promise.resolve();
      },
    };
  }

  async #load({ sources, version, problems }: RulesLoad): Promise<readonly Problem[]> {
    const domains = sources?.map(({ domain }) => domain).join(" ") ?? "nothing";
    this.story.push(`load ${version}: ${domains}`);
    const wrong = this.wrong.get(version) ?? problems;
    if (wrong instanceof Error) throw wrong;
    await this.later.get(version);
    return wrong;
  }
}

const WRONG: Problem = {
  severity: "error",
  at: 'resource "shop"',
  path: "descriptors[0].key",
  text: "is bad",
};
const WRONG_TEXT = '3 resource "shop": descriptors[0].key: is bad';

/** The steps of a test, and its story. */
const STORIES: Readonly<Record<string, readonly [run: (bed: Bed) => Promise<void>, ...story: string[]]>> = {
  "acknowledges, refuses with the version before, and acknowledges again": [
    async (bed) => {
      bed.wrong.set("2", [{ ...WRONG, severity: "warning" }, WRONG]);
      bed.wrong.set("3", [{ ...WRONG, severity: "warning" }]);
      for (const version of ["1", "2", "3"]) await bed.send(version);
    },
    ...["open", "/", "load 1: shop", "1/n1", "load 2: shop", `1/n2 ${WRONG_TEXT}`, "load 3: shop", "3/n3"],
  ],
  "the version in force is acknowledged and not loaded again, on a new stream too": [
    async (bed) => {
      for (const version of ["1", "1"]) await bed.send(version);
      bed.reopen();
      for (const version of ["1", "2"]) await bed.send(version);
    },
    ...["open", "/", "load 1: shop", "1/n1", "1/n2", "open", "1/", "1/n3", "load 2: shop", "2/n4"],
  ],
  "a refused version is looked at again on a new stream": [
    async (bed) => {
      bed.wrong.set("1", [WRONG]);
      for (const version of ["1", "1"]) await bed.send(version);
      bed.wrong.clear();
      bed.reopen();
      await bed.send("1");
    },
    ...["open", "/", "load 1: shop", `/n1 ${WRONG_TEXT}`, "open", "/", "load 1: shop", "1/n3"],
  ],
  "a reload asks for the version in force, and loads it": [
    async (bed) => {
      await bed.send("1");
      bed.provider.reload();
      await bed.send("1");
    },
    ...["open", "/", "load 1: shop", "1/n1", "/n1", "load 1: shop", "1/n2"],
  ],
  "a reload ends a wait": [
    async (bed) => {
      await bed.send("1");
      bed.events.onEnd("gone");
      bed.provider.reload();
      await bed.send("1");
    },
    ...["open", "/", "load 1: shop", "1/n1", "open", "/", "load 1: shop", "1/n2"],
  ],
  "a known name with other rules is loaded, and so is one that was refused and mended": [
    async (bed) => {
      await bed.send("", "shop");
      await bed.send("", "mall");
      bed.wrong.set("2", [WRONG]);
      await bed.send("2", "shop");
      bed.wrong.delete("2");
      await bed.send("2", "mended");
    },
    ...["open", "/", "load : shop", "/n1", "load : mall", "/n2", "load 2: shop", `/n3 ${WRONG_TEXT}`],
    ...["load 2: mended", "2/n4"],
  ],
  "applying that throws is a refusal": [
    async (bed) => {
      bed.wrong.set("1", new Error("broken"));
      await bed.send("1");
    },
    ...["open", "/", "load 1: shop", "/n1 3 the rules could not be applied"],
  ],
  "a message that is none ends the stream": [
    async (bed) => {
      await bed.send("1");
      bed.events.onMessage(new Uint8Array([0x0a, 9, 1]));
      bed.clock.advance(3_000);
    },
    ...["open", "/", "load 1: shop", "1/n1", "load : nothing", "close", "open", "1/"],
  ],
  "resources that it did not ask for are left alone": [
    async (bed) => {
      await bed.send("1", "shop", "type.googleapis.com/envoy.config.cluster.v3.Cluster");
      await bed.send("1", "shop", "elsewhere/ratelimit.config.ratelimit.v3.RateLimitConfig");
    },
    ...["open", "/", "load 1: shop", "1/n2"],
  ],
};

for (const [name, [run, ...story]] of Object.entries(STORIES)) {
  Deno.test(`xds provider: ${name}`, async () => {
    const bed = new Bed();
    await run(bed);
    assertEquals(bed.take(), story);
  });
}

Deno.test("xds provider: a version is acknowledged once it is applied; the last one that came meanwhile follows", async () => {
  const bed = new Bed();
  const applied = Promise.withResolvers<void>();
  bed.later.set("1", applied.promise);
  for (const version of ["1", "2", "3"]) await bed.send(version);
  assertEquals(bed.take(), ["open", "/", "load 1: shop"]);
  applied.resolve();
  await settledTurns();
  assertEquals(bed.take(), ["1/n1", "load 3: shop", "3/n3"]);
});

Deno.test("xds provider: a version that cannot be applied later is refused, and the next one is loaded", async () => {
  const bed = new Bed();
  bed.later.set("1", Promise.reject(new Error("boom")));
  await bed.send("1");
  await settledTurns();
  await bed.send("2");
  assertEquals(bed.take(), [
    ...["open", "/", "load 1: shop", "/n1 3 the rules could not be applied"],
    ...["load 2: shop", "2/n2"],
  ]);
  assertEquals(bed.log.lines.map(({ message }) => message), [
    "Cannot apply the rules; keeping the previous rules",
  ]);
});

Deno.test("xds provider: a version that is applied after its stream has ended is not asked for again", async () => {
  const bed = new Bed();
  const applied = Promise.withResolvers<void>();
  bed.later.set("1", applied.promise);
  await bed.send("1");
  bed.events.onEnd("gone");
  bed.clock.advance(3_000);
  bed.take();
  applied.resolve();
  await settledTurns();
  assertEquals(bed.take(), []);
  await bed.send("1");
  assertEquals(bed.take(), ["1/n2"]);
});

Deno.test("xds provider: a refused version that comes again immediately is refused later each time", async () => {
  const bed = new Bed();
  bed.wrong.set("1", [WRONG]);
  await bed.send("1");
  bed.take();
  for (const ms of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    await bed.send("1");
    bed.clock.advance(ms - 1);
    assertEquals(bed.take(), []);
    bed.clock.advance(1);
    assertEquals(bed.take().length, 1);
  }
  await bed.send("1");
  await bed.send("2");
  bed.clock.advance(60_000);
  assertEquals(bed.take(), ["load 2: shop", "2/n9"]);
});

Deno.test("xds provider: of many problems the refusal tells the first", async () => {
  const bed = new Bed();
  bed.wrong.set("1", Array.from({ length: 30 }, (_, index) => ({ ...WRONG, text: `is bad ${index}` })));
  await bed.send("1");
  const lines = bed.take().at(-1)?.split("\n") ?? [];
  assertEquals([lines.length, lines[1], lines.at(-1)], [
    21,
    'resource "shop": descriptors[0].key: is bad 1',
    "and 10 more",
  ]);
});

Deno.test("xds provider: ten minutes without a server", async () => {
  const bed = new Bed();
  await bed.send("1");
  bed.isDown = true;
  bed.events.onEnd("gone");
  bed.clock.advance(600_000);
  const seconds = [0, 3, 13, 33, 73, 133, 193, 253, 313, 373, 433, 493, 553];
  assertEquals(bed.opened.map((ms) => ms / 1_000), seconds);
  assertEquals(bed.clock.waiting, 1);
  // It is back: what is in force is announced, and the waits begin anew.
  bed.isDown = false;
  bed.clock.advance(13_000);
  bed.take();
  await bed.send("2");
  bed.isDown = true;
  bed.events.onEnd("gone");
  bed.clock.advance(20_000);
  assertEquals(bed.opened.slice(-3).map((ms) => ms / 1_000), [613, 616, 626]);
  assertEquals(bed.log.lines.filter(({ message }) => message.includes("available again")).length, 1);
});

Deno.test("xds provider: without a server at the start, the waits are those of the attempts", () => {
  const bed = new Bed();
  bed.events.onEnd("refused");
  bed.isDown = true;
  bed.clock.advance(130_000);
  assertEquals(bed.opened.map((ms) => ms / 1_000), [0, 10, 30, 70, 130]);
});

Deno.test("xds provider: a stream that held a minute without news counts as one that delivered", async () => {
  const bed = new Bed();
  await bed.send("1");
  bed.events.onEnd("gone");
  bed.clock.advance(3_000);
  bed.clock.advance(60_000);
  bed.events.onEnd("gone");
  bed.clock.advance(3_000);
  assertEquals(bed.opened, [0, 3_000, 66_000]);
});

Deno.test("xds provider: closed, it does nothing more", async () => {
  for (const hasStream of [true, false]) {
    const bed = new Bed();
    if (!hasStream) bed.events.onEnd("gone");
    await bed.provider.close();
    bed.take();
    bed.provider.reload();
    bed.clock.advance(100_000);
    assertEquals([bed.take(), bed.clock.waiting], [[], 0]);
  }
});

Deno.test("xds provider: a header that cannot be sent is reported immediately, without its value", () => {
  for (const [name, value] of [["a b", "secret"], ["authorization", "secret\n"]] as const) {
    const error = assertThrows(() =>
      createXdsProvider({
        target: { url: "127.0.0.1:7", headers: new Map([[name, value]]), maxMessageBytes: 1_000 },
        node: { id: "one", metadata: new Map() },
        waits: { retryMs: 0, initialMs: 0, maxMs: 0, spread: 0 },
        clock: new FakeClock(),
        random: () => 0,
        logger: new RecordedLogger(),
      })
    );
    const text = error instanceof Error ? error.message : "";
    const found = [text.includes(`the header "${name}" cannot be sent`), text.includes("secret")];
    assertEquals(found, [true, false]);
  }
});

Deno.test("xds provider: a server that is there and sends nothing is reported, until the first rules are there", async () => {
  const bed = new Bed();
  bed.clock.advance(60_000);
  await bed.send("1");
  bed.clock.advance(60_000);
  const fields = { server: "127.0.0.1:7", node: "one" };
  const line = { level: "warning", message: "No rules from the configuration server yet", fields } as const;
  assertEquals(bed.log.lines, [line, line]);
});

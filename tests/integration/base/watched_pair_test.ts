import { assert, assertEquals, assertMatch, assertRejects } from "#assert";
import { join } from "node:path";
import { systemBell } from "../../../src/threads/bell.ts";
import type { TlsPair, TlsPairFiles } from "../../../src/net/tls_files.ts";
import { WatchedPair } from "../../../src/net/watched_pair.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

/** So little time that a look has ended long before what it has seen is reported. */
const STEP_MS = 20;
const MINUTE_MS = 60_000;
const NAMES = { cert: "SOME_TLS_CERT", key: "SOME_TLS_KEY", ca: "SOME_TLS_CACERT" };

/** A pair of certificates that is watched, `elsewhere` ready to take its place. */
class Bed {
  readonly log: string[] = [];
  readonly pairs: TlsPair[] = [];
  /** Why no pair can be applied, if so. */
  failure: Error | undefined;
  #pair: WatchedPair | undefined;

  constructor(
    readonly certificates: Certificates,
    readonly files: TlsPairFiles,
    // Ahead by an hour: whatever certificate a test makes is valid by it.
    readonly clock = new FakeClock(Date.now() + 3_600_000),
  ) {}

  get pair(): WatchedPair {
    if (this.#pair === undefined) throw new Error("Cannot use the pair: it is not open");
    return this.#pair;
  }

  async open(): Promise<void> {
    const { files, clock } = this;
    const write = (line: string) => void this.log.push(line);
    const logger = createLogger({ level: "info", format: "text", clock, write });
    const onPair = (pair: TlsPair) => {
      if (this.failure !== undefined) throw this.failure;
      this.pairs.push(pair);
    };
    this.#pair = await WatchedPair.open({ files, names: NAMES, bell: systemBell, clock, logger, onPair });
  }

  async close(): Promise<void> {
    await this.#pair?.close();
    assertEquals(this.clock.waiting, 0);
  }

  errors(): string[] {
    return this.log.filter((line) => line.includes("level=error"));
  }

  /** The content of the files now. */
  async written(): Promise<TlsPair> {
    const { cert, key } = this.files;
    return { cert: await Deno.readTextFile(cert), key: await Deno.readTextFile(key) };
  }

  /** Writes a part of the pair that is to take the place of the first. */
  async write(part: "cert" | "key"): Promise<void> {
    const { certFile, keyFile } = this.certificates.elsewhere;
    await Deno.copyFile(part === "cert" ? certFile : keyFile, this.files[part]);
  }

  /** Lets time pass in steps until the condition holds. */
  async passes(condition: () => boolean, stepMs = 250): Promise<void> {
    await until("time to pass", () => {
      this.clock.advance(stepMs);
      return condition();
    }, { intervalMs: 5 });
  }
}

/** A test with its own certificates; the pair is that of their files unless `prepare` answers others. */
function test(
  name: string,
  run: (bed: Bed) => Promise<void>,
  prepare: (certificates: Certificates) => Promise<TlsPairFiles | undefined> = () =>
    Promise.resolve(undefined),
): void {
  Deno.test({
    ...needs(["openssl"], `watched pair: ${name}`),
    async fn() {
      await using certificates = await makeCertificates();
      const { certFile: cert, keyFile: key } = certificates.server;
      const bed = new Bed(certificates, await prepare(certificates) ?? { cert, key });
      await bed.open();
      try {
        await run(bed);
      } finally {
        await bed.close();
      }
    },
  });
}

test("files that are replaced one after the other are one new pair", async (bed) => {
  const first = bed.pair.current;
  assertEquals(first, await bed.written());
  await bed.write("cert");
  let steps = 0;
  // They do not fit, which is looked at and not reported yet.
  await bed.passes(() => ++steps === 10, STEP_MS);
  await bed.write("key");
  const second = await bed.written();
  await bed.passes(() => bed.pair.metrics.reloaded > 0, STEP_MS);
  assertEquals([bed.pairs, bed.pair.metrics], [[second], { reloaded: 1, failed: 0 }]);
  assertEquals([bed.pair.current === bed.pairs[0], first.cert === second.cert], [true, false]);
  assertMatch(
    bed.log.join("\n"),
    /^time=".*" level=info msg="Certificates of SOME_TLS_CERT and SOME_TLS_KEY reloaded".*$/,
  );
});

/** Makes a folder that shows a pair, as the kubelet mounts it: the files are links through `..data`. */
async function swapTo(
  mount: string,
  { certFile, keyFile }: Certificates["server"],
  name: string,
): Promise<void> {
  await Deno.mkdir(join(mount, name), { recursive: true });
  await Deno.copyFile(certFile, join(mount, name, "tls.crt"));
  await Deno.copyFile(keyFile, join(mount, name, "tls.key"));
  await Deno.symlink(name, join(mount, "..data_tmp"));
  await Deno.rename(join(mount, "..data_tmp"), join(mount, "..data"));
}

test("a folder of links that is swapped, as a kubelet does", async (bed) => {
  const { folder, elsewhere } = bed.certificates;
  await swapTo(join(folder, "mount"), elsewhere, "..second");
  await Deno.remove(join(folder, "mount", "..first"), { recursive: true });
  await bed.passes(() => bed.pairs.length > 0);
  assertEquals(bed.pairs.map(({ cert }) => cert), [await Deno.readTextFile(elsewhere.certFile)]);
}, async ({ folder, server }) => {
  const mount = join(folder, "mount");
  await swapTo(mount, server, "..first");
  const files = { cert: join(mount, "tls.crt"), key: join(mount, "tls.key") };
  await Deno.symlink("..data/tls.crt", files.cert);
  await Deno.symlink("..data/tls.key", files.key);
  return files;
});

test("links into another folder, of which one after the other is turned", async (bed) => {
  const { elsewhere } = bed.certificates;
  for (const [part, target] of [["cert", elsewhere.certFile], ["key", elsewhere.keyFile]] as const) {
    await Deno.symlink(target, `${bed.files[part]}.new`);
    await Deno.rename(`${bed.files[part]}.new`, bed.files[part]);
  }
  await bed.passes(() => bed.pair.metrics.reloaded > 0, STEP_MS);
  assertEquals([bed.pair.current, bed.pair.metrics], [await bed.written(), { reloaded: 1, failed: 0 }]);
}, async ({ folder, server }) => {
  await Deno.mkdir(join(folder, "live"));
  const files = { cert: join(folder, "live", "cert.pem"), key: join(folder, "live", "privkey.pem") };
  await Deno.symlink(server.certFile, files.cert);
  await Deno.symlink(server.keyFile, files.key);
  return files;
});

test("a bad one keeps the previous one, is reported once, and ends with a good one", async (bed) => {
  const { files, pair } = bed;
  const first = pair.current;
  await bed.write("cert");
  await bed.passes(() => pair.metrics.failed > 0);
  assertEquals([pair.current, pair.metrics, bed.errors().length], [first, { reloaded: 0, failed: 1 }, 1]);
  assertMatch(bed.errors()[0] ?? "", /rejected; keeping the previous pair" error="Cannot use SOME_TLS_KEY /);
  await Deno.writeTextFile(files.cert, "garbage");
  await bed.passes(() => pair.metrics.failed > 1);
  assertEquals([pair.current, bed.errors().length], [first, 2]);
  assertMatch(bed.errors()[1] ?? "", /Cannot use SOME_TLS_CERT .*: it holds no certificate in PEM/);
  await Deno.remove(files.cert);
  await bed.passes(() => pair.metrics.failed > 2);
  await bed.write("cert");
  await bed.write("key");
  await bed.passes(() => pair.metrics.reloaded > 0);
  assertEquals([pair.current, pair.metrics], [await bed.written(), { reloaded: 1, failed: 3 }]);
  const keyLine = first.key.split("\n")[1] ?? first.key;
  assert(!bed.log.some((line) => line.includes("PRIVATE") || line.includes(keyLine)));
});

test("one that cannot be applied is tried again, and the previous one stays", async (bed) => {
  const first = bed.pair.current;
  bed.failure = new Error("the port is taken");
  await bed.write("cert");
  await bed.write("key");
  await bed.passes(() => bed.pair.metrics.failed > 0);
  assertEquals([bed.pair.current, bed.errors().length], [first, 1]);
  bed.failure = undefined;
  await bed.passes(() => bed.pair.metrics.reloaded > 0, MINUTE_MS);
  assertEquals(bed.pair.current, await bed.written());
});

test("a folder that was moved away and made again", async (bed) => {
  const { folder } = bed.certificates;
  await Deno.rename(folder, `${folder}.old`);
  await Deno.mkdir(folder);
  for (const end of ["pem", "key"]) {
    await Deno.copyFile(join(`${folder}.old`, `elsewhere.${end}`), join(folder, `server.${end}`));
  }
  await Deno.remove(`${folder}.old`, { recursive: true });
  await bed.passes(() => bed.pair.metrics.reloaded > 0);
  assertEquals(bed.pair.current, await bed.written());
});

test("a certificate that runs out meanwhile is reported once", async (bed) => {
  bed.clock.advance(31 * 86_400_000);
  for (let minute = 0; minute < 3; minute++) await bed.passes(() => bed.log.length > 0, MINUTE_MS);
  assertEquals(bed.log.length, 1);
  assertMatch(
    bed.log[0] ?? "",
    /level=warning msg="a certificate of SOME_TLS_CERT .* is no longer valid, since/,
  );
});

Deno.test({
  ...needs(["openssl"], "watched pair: a first pair that cannot be used leaves nothing behind"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server, otherClient } = certificates;
    const missing = join(certificates.folder, "none", "server.pem");
    const unusable = [{ cert: server.certFile, key: otherClient.keyFile }, { cert: missing, key: missing }];
    for (const files of unusable) {
      const bed = new Bed(certificates, files);
      assertMatch((await assertRejects(() => bed.open())).message, /^Cannot use SOME_TLS_(?:KEY|CERT) /);
      await bed.close();
    }
  },
});

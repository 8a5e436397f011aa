import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { TlsPair, TlsPairFiles } from "../../../src/base/tls_files.ts";
import { WatchedPair } from "../../../src/base/watched_pair.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

/** A clock that is ahead by an hour: whatever certificate a test makes is valid by it. */
function laterClock(): FakeClock {
  return new FakeClock(Date.now() + 3_600_000);
}

/** So little time that a look has ended long before what it has seen is told. */
const STEP_MS = 20;

const NAMES = { cert: "SOME_TLS_CERT", key: "SOME_TLS_KEY", ca: "SOME_TLS_CACERT" };

Deno.test({
  ...needs(["openssl"], "watched pair: files that are replaced one after the other are one new pair"),
  async fn() {
    await using bed = await Bed.open({ clock: laterClock() });
    const first = bed.pair.current;
    assertEquals(first, await bed.written());
    await Deno.writeTextFile(bed.files.cert, await bed.next("cert"));
    let steps = 0;
    // They do not fit, which is looked at and not told yet.
    await bed.passes(() => ++steps === 10, STEP_MS);
    await Deno.writeTextFile(bed.files.key, await bed.next("key"));
    const second = await bed.written();
    await bed.passes(() => bed.pairs.length > 0, STEP_MS);
    assertEquals(bed.pairs, [second]);
    assertEquals([bed.pair.current, bed.pair.metrics], [second, { reloaded: 1, failed: 0 }]);
    assertEquals(first.cert === second.cert, false);
    assertMatch(
      bed.log.join("\n"),
      /^time=".*" level=info msg="Certificates of SOME_TLS_CERT and SOME_TLS_KEY reloaded".*$/,
    );
  },
});

Deno.test({
  ...needs(
    ["openssl"],
    "watched pair: a file that is renamed over, and a link that is swapped, as a kubelet does",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const mount = await Deno.makeTempDir({ prefix: "weir_mount_" });
    try {
      const files = { cert: join(mount, "tls.crt"), key: join(mount, "tls.key") };
      const swapTo = async (name: "server" | "elsewhere") => {
        await Deno.mkdir(join(mount, `..${name}`));
        await Deno.copyFile(certificates[name].certFile, join(mount, `..${name}`, "tls.crt"));
        await Deno.copyFile(certificates[name].keyFile, join(mount, `..${name}`, "tls.key"));
        await Deno.symlink(`..${name}`, join(mount, "..data_tmp"));
        await Deno.rename(join(mount, "..data_tmp"), join(mount, "..data"));
      };
      await swapTo("server");
      await Deno.symlink("..data/tls.crt", files.cert);
      await Deno.symlink("..data/tls.key", files.key);
      await using bed = await Bed.open({ files, clock: laterClock() });
      await swapTo("elsewhere");
      await Deno.remove(join(mount, "..server"), { recursive: true });
      await bed.passes(() => bed.pairs.length > 0);
      assertEquals(bed.pairs.map(({ cert }) => cert), [
        await Deno.readTextFile(certificates.elsewhere.certFile),
      ]);
    } finally {
      await Deno.remove(mount, { recursive: true });
    }
  },
});

Deno.test({
  ...needs(["openssl"], "watched pair: links into another folder, of which one after the other is turned"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, server, elsewhere } = certificates;
    await Deno.mkdir(join(folder, "live"));
    const files = { cert: join(folder, "live", "cert.pem"), key: join(folder, "live", "privkey.pem") };
    await Deno.symlink(server.certFile, files.cert);
    await Deno.symlink(server.keyFile, files.key);
    await using bed = await Bed.open({ files, clock: laterClock() });
    for (
      const [link, target] of [[files.cert, elsewhere.certFile], [files.key, elsewhere.keyFile]] as const
    ) {
      await Deno.symlink(target, `${link}.new`);
      await Deno.rename(`${link}.new`, link);
    }
    await bed.passes(() => bed.pairs.length > 0, STEP_MS);
    assertEquals(bed.pair.current.cert, await Deno.readTextFile(elsewhere.certFile));
    assertEquals(bed.pair.metrics, { reloaded: 1, failed: 0 });
  },
});

Deno.test({
  ...needs(
    ["openssl"],
    "watched pair: a bad one keeps the one before, is told once, and ends with a good one",
  ),
  async fn() {
    const clock = laterClock();
    await using bed = await Bed.open({ clock });
    const { files, pair } = bed;
    const first = pair.current;
    await Deno.writeTextFile(files.cert, await bed.next("cert"));
    await bed.passes(() => pair.metrics.failed > 0);
    assertEquals([pair.current, pair.metrics, bed.errors().length], [first, { reloaded: 0, failed: 1 }, 1]);
    assertMatch(
      bed.errors()[0] ?? "",
      /rejected; keeping the previous pair" error="Cannot use SOME_TLS_KEY /,
    );
    // The look of every minute finds the same files.
    for (let minute = 0; minute < 3; minute++) await bed.passes(() => true, 60_000);
    assertEquals([pair.metrics.failed, bed.errors().length], [1, 1]);
    await Deno.writeTextFile(files.cert, "garbage");
    await bed.passes(() => pair.metrics.failed > 1);
    assertEquals([pair.current, bed.errors().length], [first, 2]);
    assertMatch(bed.errors()[1] ?? "", /Cannot use SOME_TLS_CERT .*: it holds no certificate in PEM/);
    await Deno.remove(files.cert);
    await bed.passes(() => pair.metrics.failed > 2);
    await Deno.writeTextFile(files.cert, await bed.next("cert"));
    await Deno.writeTextFile(files.key, await bed.next("key"));
    await bed.passes(() => pair.metrics.reloaded > 0);
    assertEquals([pair.current, pair.metrics], [await bed.written(), { reloaded: 1, failed: 3 }]);
    assert(!bed.log.some((line) => line.includes("PRIVATE") || line.includes(keyBody(first.key))));
  },
});

Deno.test({
  ...needs(["openssl"], "watched pair: who cannot take a new one is asked again, and the one before stays"),
  async fn() {
    const clock = laterClock();
    let failing = true;
    const onPair = () => failing ? Promise.reject(new Error("the port is taken")) : Promise.resolve();
    await using bed = await Bed.open({ clock, onPair });
    const first = bed.pair.current;
    await Deno.writeTextFile(bed.files.cert, await bed.next("cert"));
    await Deno.writeTextFile(bed.files.key, await bed.next("key"));
    await bed.passes(() => bed.pair.metrics.failed > 0);
    assertEquals([bed.pair.current, bed.errors().length], [first, 1]);
    failing = false;
    await bed.passes(() => bed.pair.metrics.reloaded > 0, 60_000);
    assertEquals(bed.pair.current, await bed.written());
  },
});

Deno.test({
  ...needs(["openssl"], "watched pair: what no event tells is found within a minute"),
  async fn() {
    const clock = laterClock();
    await using bed = await Bed.open({ clock });
    const { folder } = bed.certificates;
    await Deno.rename(folder, `${folder}.old`);
    await Deno.mkdir(folder);
    for (const file of ["server.pem", "server.key"]) {
      await Deno.copyFile(
        join(`${folder}.old`, file.replace("server", "elsewhere")),
        join(folder, file),
      );
    }
    await Deno.remove(`${folder}.old`, { recursive: true });
    await bed.passes(() => bed.pair.metrics.reloaded > 0, 60_000);
    assertEquals(bed.pair.current, await bed.written());
  },
});

Deno.test({
  ...needs(["openssl"], "watched pair: a certificate that runs out meanwhile is told once"),
  async fn() {
    const clock = laterClock();
    await using bed = await Bed.open({ clock });
    clock.advance(31 * 86_400_000);
    for (let minute = 0; minute < 3; minute++) await bed.passes(() => bed.log.length > 0, 60_000);
    assertEquals(bed.log.length, 1);
    assertMatch(
      bed.log[0] ?? "",
      /level=warning msg="a certificate of SOME_TLS_CERT .* is no longer valid, since/,
    );
  },
});

Deno.test({
  ...needs(["openssl"], "watched pair: a first pair that cannot be used leaves nothing behind"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server, otherClient } = certificates;
    const missing = join(certificates.folder, "none", "server.pem");
    const clock = new FakeClock();
    for (
      const files of [{ cert: server.certFile, key: otherClient.keyFile }, { cert: missing, key: missing }]
    ) {
      const logger = createLogger({ level: "error", format: "text", clock, write: () => {} });
      const open = () => WatchedPair.open({ files, names: NAMES, clock, logger, onPair: () => {} });
      assertMatch((await assertRejects(open)).message, /^Cannot use SOME_TLS_(?:KEY|CERT) /);
      assertEquals(clock.waiting, 0);
    }
  },
});

interface BedOptions {
  readonly files?: TlsPairFiles;
  readonly clock?: Clock;
  readonly onPair?: () => Promise<void>;
}

/** A pair of certificates of the test that is watched, `elsewhere` ready to take its place. */
class Bed implements AsyncDisposable {
  readonly certificates: Certificates;
  readonly files: TlsPairFiles;
  readonly pair: WatchedPair;
  readonly pairs: readonly TlsPair[];
  readonly log: readonly string[];
  readonly #clock: Clock;

  static async open({ files: given, clock = systemClock, onPair }: BedOptions = {}): Promise<Bed> {
    const certificates = await makeCertificates();
    const files = given ?? { cert: certificates.server.certFile, key: certificates.server.keyFile };
    const [pairs, log]: [TlsPair[], string[]] = [[], []];
    const logger = createLogger({
      level: "info",
      format: "text",
      clock,
      write: (line) => void log.push(line),
    });
    const take = (pair: TlsPair) => onPair === undefined ? void pairs.push(pair) : onPair();
    const pair = await WatchedPair.open({ files, names: NAMES, clock, logger, onPair: take });
    return new Bed({ certificates, files, pair, pairs, log, clock });
  }

  private constructor(
    parts: Pick<Bed, "certificates" | "files" | "pair" | "pairs" | "log"> & { readonly clock: Clock },
  ) {
    this.certificates = parts.certificates;
    this.files = parts.files;
    this.pair = parts.pair;
    this.pairs = parts.pairs;
    this.log = parts.log;
    this.#clock = parts.clock;
  }

  errors(): string[] {
    return this.log.filter((line) => line.includes("level=error"));
  }

  /** What the files hold now. */
  async written(): Promise<TlsPair> {
    const [cert, key] = await Promise.all(
      [this.files.cert, this.files.key].map((path) => Deno.readTextFile(path)),
    );
    return { cert: cert ?? "", key: key ?? "" };
  }

  /** A part of the pair that is to take the place of the first. */
  async next(part: "cert" | "key"): Promise<string> {
    const { certFile, keyFile } = this.certificates.elsewhere;
    return await Deno.readTextFile(part === "cert" ? certFile : keyFile);
  }

  /** Lets time pass in steps until the condition holds. */
  async passes(condition: () => boolean, stepMs = 250): Promise<void> {
    const clock = this.#clock;
    assert(clock instanceof FakeClock);
    await until("time to pass", async () => {
      clock.advance(stepMs);
      await new Promise((resolve) => setTimeout(resolve, 5));
      return condition();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pair.close();
    await this.certificates[Symbol.asyncDispose]();
    if (this.#clock instanceof FakeClock) assertEquals(this.#clock.waiting, 0);
  }
}

function keyBody(key: string): string {
  return key.split("\n")[1] ?? key;
}

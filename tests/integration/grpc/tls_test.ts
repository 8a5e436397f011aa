import { assert, assertEquals, assertMatch } from "#assert";
import { Buffer } from "node:buffer";
import { X509Certificate } from "node:crypto";
import net from "node:net";
import { join } from "node:path";
import { ClientCertificates, coversName } from "../../../src/grpc/client_certificates.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../../src/grpc/engine.ts";
import { startGrpcJs } from "../../../src/grpc/grpc_js_engine.ts";
import { startNative } from "../../../src/grpc/native/native_engine.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { CLIENT_NAME, openssl, replaceText, TlsBed, TlsPeer } from "./tls_bed.ts";

Deno.test({
  ...needs(["openssl"], "client certificates: a session that began elsewhere counts for nothing"),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, client } = certificates;
    const [ca, own] = await Promise.all(
      [authority, client].map(({ certFile }) => Deno.readTextFile(certFile)),
    );
    const clients = new ClientCertificates({ ca: ca ?? "", clientName: undefined, now: () => Date.now() });
    const certificate = new X509Certificate(own ?? "");
    const problemOf = (isReused: boolean, authorized = true) =>
      clients.problemOf({
        authorized,
        authorizationError: new Error("refused"),
        getPeerX509Certificate: () => certificate,
        isSessionReused: () => isReused,
      });
    const elsewhere = "the client resumes an unknown session";
    assertEquals(problemOf(true), elsewhere);
    assertMatch(problemOf(false, false) ?? "", /is not trusted/);
    assertEquals([problemOf(true), problemOf(false), problemOf(true)], [elsewhere, undefined, undefined]);
  },
});

Deno.test({
  ...needs(["openssl"], "a named pipe next to the pair holds up neither calls nor the end of the process"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, server } = certificates;
    const env = {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: server.certFile,
      GRPC_SERVER_TLS_KEY: server.keyFile,
    };
    await using weir = await startWeir({ env });
    await new Deno.Command("mkfifo", { args: [join(folder, "pipe")] }).output();
    await Deno.writeTextFile(join(folder, "another"), "");
    const options = {
      host: "127.0.0.1",
      port: Number(weir.grpcAddress.split(":")[1]),
      rejectUnauthorized: false,
    };
    for (let call = 0; call < 3; call++) {
      await using peer = await TlsPeer.connect({ ...options, ALPNProtocols: ["h2"] });
      assert(peer.isWelcome);
    }
    const begin = performance.now();
    // One that does not end is killed after a while.
    assertEquals(await weir.stop(), 0);
    assert(performance.now() - begin < 20_000);
  },
});

type Start = (options: GrpcEngineOptions) => Promise<GrpcEngine>;

const NOT_FOR = `the client's certificate is not for "${CLIENT_NAME}"`;
const UNVERIFIED = "the client's certificate is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)";

/** A client that shakes hands needs less, also on a machine that stands still for a while. */
const HANDSHAKE_MS = 3_000;

const ENGINES = { "grpc-js": startGrpcJs, native: startNative } as const;

Deno.test("names in certificates: case, the last dot, and a star for one whole first label", () => {
  const names = ["a.test", "A.Test.", "b.a.test", "c.b.a.test", "test", ".test", ""];
  const covered = (pattern: string) => names.filter((name) => coversName(pattern, name));
  assertEquals(
    ["a.test", "*.test", "*.a.test", "B*.a.test", "*", "", "*.*.test"].map(covered),
    [["a.test", "A.Test."], ["a.test", "A.Test."], ["b.a.test"], [], [], [], []],
  );
});

const CASES: Readonly<Record<string, (start: Start) => Promise<void>>> = {
  async "calls over TLS 1.2 and 1.3 are answered, with no certificate of the client"(start) {
    await using bed = await TlsBed.open(start);
    using client = bed.client();
    assertEquals(await client.echo("hello"), "hello");
    const versions = [];
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      await using peer = await bed.peer({ minVersion: version, maxVersion: version });
      versions.push([peer.isWelcome, peer.version, peer.fingerprint === await bed.fingerprintOf(bed.server)]);
    }
    assertEquals(versions, [[true, "TLSv1.2", true], [true, "TLSv1.3", true]]);
    assertEquals([bed.tls.refused, bed.log], [0, []]);
  },
  async "TLS 1.1, plain text and a client without HTTP/2 are refused, with the cause"(start) {
    await using bed = await TlsBed.open(start);
    assertMatch(await oldClient(bed.port), /alert/);
    bed.pass();
    await using http1 = await bed.peer({ ALPNProtocols: ["http/1.1"] });
    bed.pass();
    await using none = await bed.peer({ ALPNProtocols: [] });
    bed.pass();
    assertEquals([http1.isWelcome, none.isWelcome, await plainText(bed.port)], [false, false, true]);
    await until("four refusals", () => bed.tls.refused === 4);
    const counts = ["", "the client does not offer h2, HTTP/2 over TLS", "the client does not speak TLS ("]
      .map((start) => bed.causes().filter((cause) => cause.startsWith(start)).length);
    assertEquals(counts, [4, 1, 1]);
    assertEquals(bed.log.filter((line) => !/ peer="(?:127\.0\.0\.1|::ffff:127\.0\.0\.1)"$/.test(line)), []);
  },
  async "a client certificate is asked for, verified, and looked at for its name"(start) {
    await using bed = await TlsBed.open(start, { asksClients: true, clientName: CLIENT_NAME });
    const { certificates } = bed;
    const issued = (text: string, names?: string, isExpired = false) =>
      certificates.issue(text, { isExpired, ...names === undefined ? {} : { names } });
    const cases: readonly (readonly [string, CertificateFiles | undefined, string | undefined])[] = [
      ["its name", await issued("good", `DNS:other.test,DNS:${CLIENT_NAME}`), undefined],
      ["a star", await issued("star", "DNS:*.TEST"), undefined],
      ["another name", await issued("another", "DNS:another.test"), NOT_FOR],
      ["a star elsewhere", await issued("elsewhere_star", "DNS:*.elsewhere.test"), NOT_FOR],
      ["no name but the subject's", await issued(CLIENT_NAME), NOT_FOR],
      ["an address that reads like it", await trick(bed), NOT_FOR],
      ["a name as mail", await issued("mail", `email:a@${CLIENT_NAME}`), NOT_FOR],
      [
        "out of time",
        await issued("expired", `DNS:${CLIENT_NAME}`, true),
        "the client's certificate has expired",
      ],
      [
        "another authority",
        await certificates.issue("stranger", { names: `DNS:${CLIENT_NAME}`, byOther: true }),
        UNVERIFIED,
      ],
      ["none", undefined, "the client has no certificate"],
    ];
    const seen = [];
    for (const [title, files] of cases) {
      const before = bed.causes().length;
      await using peer = await bed.peer({}, files);
      seen.push([title, peer.isWelcome, bed.causes()[before]]);
      bed.pass();
    }
    assertEquals(seen, cases.map(([title, , cause]) => [title, cause === undefined, cause]));
    assertEquals([bed.tls.refused, bed.pair.metrics], [8, { reloaded: 0, failed: 0 }]);
    using client = bed.client(cases[0]?.[1]);
    assertEquals(await client.echo("hello"), "hello");
  },
  async "a resumed session is worth what its certificate is worth now"(start) {
    await using bed = await TlsBed.open(start, { asksClients: true, clientName: CLIENT_NAME });
    const { authority, otherAuthority, folder } = bed.certificates;
    const own = await bed.certificates.issue("own", { names: `DNS:${CLIENT_NAME}` });
    const session = join(folder, "session");
    const connect = (...flags: string[]) => sessionOf(bed.port, own, [...flags, session]);
    assertEquals([await connect("-sess_out"), await connect("-sess_in")], ["New", "Reused"]);
    assertEquals(bed.tls.refused, 0);
    const [first, second] = await Promise.all(
      [authority, otherAuthority].map(({ certFile }) => Deno.readTextFile(certFile)),
    );
    const changes: readonly (readonly [string, string, number, number])[] = [
      ["another authority as well", `${first}${second}`, 1, 0],
      ["back to the one", `${first}`, 2, 0],
      ["another authority only", `${second}`, 3, 1],
      ["the one again", `${first}`, 4, 1],
    ];
    for (const [title, ca, reloaded, refused] of changes) {
      await Deno.writeTextFile(authority.certFile, ca);
      await until("the authorities to be taken", () => bed.pair.metrics.reloaded === reloaded);
      assertEquals([title, await connect("-sess_in")], [title, "Reused"]);
      assertEquals([title, bed.tls.refused], [title, refused]);
    }
    bed.pass(31 * 86_400_000);
    await connect("-sess_in");
    assertEquals(bed.causes(), [
      "the client resumes a session of other authorities",
      "the client's certificate has expired",
    ]);
  },
  async "any name will do where none is asked for"(start) {
    await using bed = await TlsBed.open(start, { asksClients: true });
    await using nameless = await bed.peer({}, bed.certificates.client);
    await using stranger = await bed.peer({}, bed.certificates.otherClient);
    assertEquals([nameless.isWelcome, stranger.isWelcome], [true, false]);
  },
  async "refusals of one kind are logged once a second and counted each"(start) {
    await using bed = await TlsBed.open(start, { asksClients: true });
    const refuse = async () => await (await bed.peer({}))[Symbol.asyncDispose]();
    for (let call = 0; call < 3; call++) await refuse();
    bed.pass();
    await refuse();
    assertEquals([bed.tls.refused, bed.log.length], [4, 2]);
    const [first = "", second = ""] = bed.log;
    assertMatch(
      first,
      /^time=".*" level=warning msg="gRPC client refused" cause="the client has no certificate" peer="127.0.0.1"$/,
    );
    assertMatch(second, / suppressed=2$/);
  },
  async "a pair is swapped while calls run: none fails, and who comes then sees the new one"(start) {
    await using bed = await TlsBed.open(start, { asksClients: true, clientName: CLIENT_NAME });
    const own = await bed.certificates.issue("own", { names: `DNS:${CLIENT_NAME}` });
    using client = bed.client(own);
    const held = client.hold("held");
    await using before = await bed.peer({}, own);
    await using calls = new Calls((text) => client.echo(text));
    const first = await bed.fingerprintOf(bed.server);
    const prints = [];
    for (let round = 1; round <= 3; round++) {
      await bed.certificates.issue("server", { names: "DNS:localhost,IP:127.0.0.1" });
      await until("the pair to be taken", () => bed.pair.metrics.reloaded === round);
      await using after = await bed.peer({}, own);
      await using stranger = await bed.peer({}, bed.certificates.otherClient);
      await using nobody = await bed.peer({});
      const old = await oldClient(bed.port);
      prints.push([
        after.fingerprint === await bed.fingerprintOf(bed.server),
        after.fingerprint === first,
        // What was asked for before the swap is asked for after it.
        [after.isWelcome, stranger.isWelcome, nobody.isWelcome, /alert/.test(old)],
      ]);
    }
    assertEquals(prints, Array(3).fill([true, false, [true, false, false, true]]));
    assertEquals([before.isOpen, before.fingerprint === first], [true, true]);
    await until("several calls", () => calls.made > 10);
    assertEquals(await calls.end(), []);
    for (const reply of bed.probe.held) reply("held through");
    assertEquals(await held, "held through");
  },
  async "a bad new pair keeps the previous one, and is logged and counted"(start) {
    await using bed = await TlsBed.open(start);
    const first = await bed.fingerprintOf(bed.server);
    const { certFile, keyFile } = bed.server;
    const { elsewhere } = bed.certificates;
    const [cert, key] = [await Deno.readTextFile(certFile), await Deno.readTextFile(keyFile)];
    const changes = [
      () => replaceText(certFile, "garbage"),
      async () => await replaceText(certFile, await Deno.readTextFile(elsewhere.certFile)),
      async () => {
        await replaceText(certFile, cert);
        await replaceText(keyFile, await Deno.readTextFile(elsewhere.keyFile));
      },
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      await until("the bad pair to be reported", () => {
        // It might be half a good one for a while.
        bed.elapse(1_000);
        return bed.pair.metrics.failed === index + 1;
      });
      await using peer = await bed.peer({});
      assertEquals([peer.isWelcome, peer.fingerprint === first], [true, true]);
    }
    assertEquals(bed.log.map((line) => /error="Cannot use (\w+)/.exec(line)?.[1]), [
      "GRPC_SERVER_TLS_CERT",
      "GRPC_SERVER_TLS_KEY",
      "GRPC_SERVER_TLS_KEY",
    ]);
    assert(!bed.log.join().includes(key.split("\n")[1] ?? key));
  },
  async "a peer that hangs in the handshake is closed, and delays no other and no stop"(start) {
    await using bed = await TlsBed.open(start, { handshakeMs: HANDSHAKE_MS });
    const silent = Array.from({ length: 20 }, () => net.connect(bed.port, "127.0.0.1"));
    const closed = silent.map((socket) => {
      return new Promise((resolve) => socket.on("error", () => {}).on("close", resolve).resume());
    });
    using client = bed.client();
    assertEquals(await client.echo("hello"), "hello");
    await Promise.all(closed);
    assertEquals(bed.tls.refused, 20);
    assertMatch(bed.log[0] ?? "", /cause="TLS handshake timeout" peer="127.0.0.1"$/);
  },
  async "running calls end before the server stops"(start) {
    await using bed = await TlsBed.open(start);
    using client = bed.client();
    const held = client.hold("held");
    await until("the call to run", () => bed.probe.held.length === 1);
    const closed = bed.engine.close(10_000);
    for (const reply of bed.probe.held) reply("held through");
    assertEquals(await held, "held through");
    await closed;
  },
  async "who looks whether the port is open is not refused"(start) {
    await using bed = await TlsBed.open(start);
    const socket = net.connect(bed.port, "127.0.0.1");
    await new Promise((resolve) => socket.on("connect", resolve));
    await new Promise((resolve) => socket.on("close", resolve).destroy());
    using client = bed.client();
    assertEquals(await client.echo("hello"), "hello");
    assertEquals([bed.tls.refused, bed.log], [0, []]);
  },
  async "a unix socket carries TLS as well"(start) {
    await using certificates = await makeCertificates();
    const path = join(certificates.folder, "weir.sock");
    const target = { kind: "unix", path, mode: undefined } as const;
    await using bed = await TlsBed.open(start, { target, asksClients: true });
    await using own = await bed.peer({ path }, bed.certificates.client);
    await using nobody = await bed.peer({ path });
    assertEquals([own.isWelcome, nobody.isWelcome], [true, false]);
  },
};

for (const [name, start] of Object.entries(ENGINES)) {
  for (const [title, run] of Object.entries(CASES)) {
    Deno.test({ ...needs(["openssl"], `gRPC over TLS, ${name}: ${title}`), fn: () => run(start) });
  }
}

/** Calls, one after the other, until they are ended. */
class Calls implements AsyncDisposable {
  /** Number of those made so far. */
  made = 0;
  readonly #done: Promise<readonly string[]>;
  #isEnding = false;

  constructor(call: (text: string) => Promise<string>) {
    this.#done = this.#make(call);
  }

  /** Makes no more; answers what was answered wrongly. */
  async end(): Promise<readonly string[]> {
    this.#isEnding = true;
    return await this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  async #make(call: (text: string) => Promise<string>): ReturnType<Calls["end"]> {
    const wrong: string[] = [];
    for (; !this.#isEnding; this.made++) {
      const text = `call ${this.made}`;
      const answer = await call(text);
      if (answer !== text) wrong.push(answer);
    }
    return wrong;
  }
}

/** The first bytes of a client of TLS 1.1. */
async function oldClient(port: number): Promise<string> {
  const version = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
  return (await openssl(["s_client", "-connect", `127.0.0.1:${port}`, ...version])).text;
}

/** True if a client began a session of TLS 1.2 or took up the one in a file. */
async function sessionOf(port: number, own: CertificateFiles, flags: readonly string[]): Promise<string> {
  const { text } = await openssl([
    ...["s_client", "-connect", `127.0.0.1:${port}`, "-tls1_2", "-alpn", "h2"],
    ...["-cert", own.certFile, "-key", own.keyFile, ...flags],
  ]);
  return /^(?:New|Reused)(?=, TLS)/m.exec(text)?.[0] ?? text;
}

/** True if the port closes a connection on which HTTP/2 comes in plain text. */
async function plainText(port: number): Promise<boolean> {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {}).on(
    "connect",
    () => socket.write(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
  );
  return await new Promise((resolve) => socket.on("close", () => resolve(true)).resume());
}

/** Its one name is an address, whose text goes on like a DNS name where names are listed. */
async function trick({ certificates: { folder, authority } }: TlsBed): Promise<CertificateFiles> {
  const files = { certFile: join(folder, "trick.pem"), keyFile: join(folder, "trick.key") };
  const config = join(folder, "trick.cnf");
  const names = `[req]\ndistinguished_name=name\n[name]\n[own]\nsubjectAltName=@names\n` +
    `[names]\nURI.1=http://a/, DNS:${CLIENT_NAME}\n`;
  await Deno.writeTextFile(config, names);
  await openssl([
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"],
    ...["-CA", authority.certFile, "-CAkey", authority.keyFile, "-subj", "/CN=trick"],
    ...["-config", config, "-extensions", "own", "-keyout", files.keyFile, "-out", files.certFile],
  ]);
  return files;
}

import { assertEquals, assertRejects } from "#assert";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { systemClock } from "../../../src/base/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { listen, type Listener } from "../../../src/grpc/listener.ts";
import { UnixSocketFile } from "../../../src/grpc/unix_socket.ts";
import { handled } from "../../harness/handled.ts";
import { until } from "../../harness/until.ts";

/** Says a name to each client, and again to all that comes from there. */
function sayTo(socket: Duplex, name: string): void {
  socket.on("error", () => {});
  socket.write(name);
  socket.on("data", () => socket.write(name));
}

/** A listener that says its name to everyone and keeps the connection. */
function open(path: string, name: string, mode?: number): Promise<Listener> {
  return listen({ kind: "unix", path, mode }, (socket) => sayTo(socket, name), {
    name: "test",
    maxConnections: Infinity,
    onState: () => {},
    clock: systemClock,
    logger: createLogger({ level: "fatal", format: "text", clock: systemClock, write: () => {} }),
  });
}

/** A connection that takes note of what is said on it. */
class Caller implements AsyncDisposable {
  heard = "";
  readonly #connection: Promise<Deno.UnixConn>;
  readonly #ended: Promise<void>;

  constructor(path: string) {
    this.#connection = Deno.connect({ transport: "unix", path });
    this.#ended = this.#listen().catch((error: unknown) => void (this.heard += String(error)));
  }

  async hears(text: string): Promise<void> {
    await until(`"${text}" to be heard`, () => this.heard === text);
  }

  async say(): Promise<void> {
    await (await this.#connection).write(new TextEncoder().encode("?"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const connection = await this.#connection.catch(() => undefined);
    connection?.close();
    await this.#ended;
  }

  async #listen(): Promise<void> {
    const connection = await this.#connection;
    const bytes = new Uint8Array(100);
    for (;;) {
      // What is closed here has an error in place of an end.
      const count = await connection.read(bytes).catch(() => null);
      if (count === null) return;
      this.heard += new TextDecoder().decode(bytes.subarray(0, count));
    }
  }
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map((entry) => entry.name).sort();
}

/** A test with a path for a socket in its own folder. */
function socketTest(name: string, run: (path: string, folder: string) => Promise<void>): void {
  Deno.test(`unix socket: ${name}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      await run(join(folder, "grpc.sock"), folder);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

/** A socket file without a listener, as a killed process leaves it. */
function leaveSocketBehind(path: string): void {
  using _listener = Deno.listen({ transport: "unix", path: `${path}.live` });
  Deno.linkSync(`${path}.live`, path);
}

socketTest(
  "a successor takes the file over, and its predecessor keeps its connections",
  async (path, folder) => {
    const first = await open(path, "first");
    await using early = new Caller(path);
    await early.hears("first");
    const second = await open(path, "second");
    // The second name of the predecessor, in case that its successor ends first.
    assertEquals(names(folder).map((name) => name.replace(/[0-9a-f]{8}/, "X")), [
      "grpc.sock",
      "grpc.sock.X~",
    ]);
    await using late = new Caller(path);
    await late.hears("second");
    await early.say();
    await early.hears("firstfirst");
    first.close();
    assertEquals(names(folder), ["grpc.sock"]);
    await using latest = new Caller(path);
    await latest.hears("second");
    second.close();
    assertEquals(names(folder), []);
  },
);

socketTest("a successor that ends first gives the path back", async (path, folder) => {
  const first = await open(path, "first");
  const second = await open(path, "second");
  const third = await open(path, "third");
  for (const [ended, left] of [[third, "second"], [second, "first"]] as const) {
    ended.close();
    await using caller = new Caller(path);
    await caller.hears(left);
  }
  first.close();
  assertEquals(names(folder), []);
});

// Not by node's sockets, each of which closes its descriptor twice: often enough, that hits another one.
socketTest("a client that finds the file gets an answer, through fifty successions", async (path) => {
  let listener = await open(path, "x");
  let going = true;
  let calls = 0;
  const heard = new Set<string>();
  const call = async () => {
    while (going) {
      await using caller = new Caller(path);
      heard.add(await until("a word", () => caller.heard, { intervalMs: 0 }));
      calls++;
    }
  };
  const calling = handled(call());
  try {
    for (let succession = 0; succession < 50; succession++) {
      const successor = await open(path, "x");
      // The call that is under way may be one of the old socket's; the second one is the successor's.
      const goal = calls + 2;
      await until("calls of the successor", () => calls >= goal, { intervalMs: 0 });
      listener.close();
      listener = successor;
    }
  } finally {
    going = false;
  }
  await calling;
  listener.close();
  assertEquals([...heard], ["x"]);
});

socketTest("the file has its mode from the moment that it is there", async (path, folder) => {
  const file = await UnixSocketFile.prepare(path);
  using _listener = Deno.listen({ transport: "unix", path: file.besidePath });
  assertEquals(names(folder), [file.besidePath.slice(folder.length + 1)]);
  await file.publish(0o620);
  assertEquals([names(folder), (Deno.statSync(path).mode ?? 0) & 0o777], [["grpc.sock"], 0o620]);
  file.remove();
  assertEquals(names(folder), []);
});

socketTest("what a killed process left at the path is replaced", async (path, folder) => {
  leaveSocketBehind(path);
  const listener = await open(path, "new");
  await using caller = new Caller(path);
  await caller.hears("new");
  listener.close();
  assertEquals(names(folder), []);
});

const THINGS: Readonly<Record<string, (path: string) => Promise<void>>> = {
  "a file": (path) => Deno.writeTextFile(path, "precious"),
  "an empty file": (path) => Deno.writeTextFile(path, ""),
  "a folder": (path) => Deno.mkdir(path),
  "a link to nothing": (path) => Deno.symlink(`${path}.absent`, path),
};

for (const [thing, make] of Object.entries(THINGS)) {
  socketTest(`what is no socket stays, and is named: ${thing}`, async (path, folder) => {
    await make(path);
    const before = Deno.lstatSync(path);
    const error = await assertRejects(() => open(path, "new"));
    const state = "a file that is not a socket exists there";
    assertEquals(error.message, `Cannot listen for gRPC on "${path}": ${state}`);
    assertEquals([names(folder), Deno.lstatSync(path)], [["grpc.sock"], before]);
  });
}

socketTest("what a process left next to the path is cleared away, and nothing else", async (path, folder) => {
  leaveSocketBehind(`${path}.0123abcd~`);
  leaveSocketBehind(`${path}.old`);
  leaveSocketBehind(join(folder, "other.sock.0123abcd~"));
  await Deno.writeTextFile(`${path}.89abcdef~`, "no socket");
  const starting = Deno.listen({ transport: "unix", path: `${path}.ffffffff~` });
  const listener = await open(path, "new");
  assertEquals(names(folder), [
    "grpc.sock",
    "grpc.sock.89abcdef~",
    "grpc.sock.ffffffff~",
    "grpc.sock.old",
    "other.sock.0123abcd~",
  ]);
  listener.close();
  starting.close();
});

socketTest("a file that somebody removed or made anew is left as it is", async (path, folder) => {
  const first = await open(path, "first");
  await Deno.remove(path);
  first.close();
  assertEquals(names(folder), []);
  const second = await open(path, "second");
  await Deno.remove(path);
  await Deno.writeTextFile(path, "theirs");
  second.close();
  assertEquals(await Deno.readTextFile(path), "theirs");
});

socketTest("a path that leaves no room for a name next to it is refused", async (_, folder) => {
  const longest = join(folder, "s".repeat(97 - folder.length - 1));
  const listener = await open(longest, "new");
  listener.close();
  const error = await assertRejects(() => open(`${longest}s`, "new"));
  const state = "its path is too long; expected at most 97 bytes";
  assertEquals(error.message, `Cannot listen for gRPC on "${longest}s": ${state}`);
});

Deno.test("unix socket: a folder that is not there is an error that names it", async () => {
  const error = await assertRejects(() => open("/nowhere/grpc.sock", "new"));
  const state = 'the folder "/nowhere" does not exist; create it first';
  assertEquals(error.message, `Cannot listen for gRPC on "/nowhere/grpc.sock": ${state}`);
});

socketTest("an error shows the path that was given, and no other name", async (_, folder) => {
  await Deno.writeTextFile(join(folder, "file"), "");
  const path = join(folder, "file", "grpc.sock");
  const error = await assertRejects(() => open(path, "new"));
  assertEquals(error.message.startsWith(`Cannot listen for gRPC on "${path}": `), true, error.message);
  assertEquals(error.message.includes("~"), false, error.message);
});

import net from "node:net";

/** What becomes of one command: octets to answer with; nothing where the script has done what it wants. */
export type KvScript = (command: readonly string[], socket: net.Socket) => string | undefined;

/** The answer to what every client asks before it is ready. */
const STATE: KvScript = () => "$17\r\nredis_version:7.0\r\n";

/** A server that speaks as much of the Redis protocol as a script says; closed at the end of an `await using`. */
export class ScriptedKvServer implements AsyncDisposable {
  readonly #script: KvScript;
  readonly #info: KvScript;
  readonly #sockets = new Set<net.Socket>();
  readonly #server = net.createServer((socket) => this.#take(socket));
  #accepted = 0;

  constructor(script: KvScript, info = STATE) {
    this.#script = script;
    this.#info = info;
  }

  /** `127.0.0.1:port`, as `KV_URL` takes it. */
  get url(): string {
    const bound = this.#server.address();
    return `127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`;
  }

  /** How many connections were made in all. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Begins to listen. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  /** Closes everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #take(socket: net.Socket): void {
    this.#accepted++;
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    let rest = "";
    socket.on("data", (bytes) => {
      const { commands, left } = commandsOf(rest + bytes.toString("latin1"));
      rest = left;
      for (const command of commands) {
        const script = command[0]?.toLowerCase() === "info" ? this.#info : this.#script;
        const answer = script(command, socket);
        if (answer !== undefined && !socket.destroyed) socket.write(answer, "latin1");
      }
    });
  }
}

/** Starts a server with this script on a free port; `info` answers INFO. */
export async function startScriptedKv(script: KvScript, info?: KvScript): Promise<ScriptedKvServer> {
  const server = new ScriptedKvServer(script, info);
  await server.listen();
  return server;
}

function commandsOf(text: string): { commands: string[][]; left: string } {
  const commands: string[][] = [];
  let left = text;
  for (;;) {
    const [head, count] = /^\*(\d+)\r\n/.exec(left) ?? [];
    if (head === undefined) return { commands, left };
    let at = head.length;
    const command: string[] = [];
    while (command.length < Number(count)) {
      const [prefix, length] = /^\$(\d+)\r\n/.exec(left.slice(at)) ?? [];
      if (prefix === undefined || left.length < at + prefix.length + Number(length) + 2) {
        return { commands, left };
      }
      at += prefix.length;
      command.push(left.slice(at, at + Number(length)));
      at += Number(length) + 2;
    }
    commands.push(command);
    left = left.slice(at);
  }
}

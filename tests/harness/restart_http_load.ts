import net from "node:net";
import { RestartLoad } from "./restart_load.ts";

const CALLERS = 8;
const BODY = JSON.stringify({
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "bob" }] }],
});

/**
 * Callers of `/json` that keep their connections, each as a careful client of HTTP/1.1 does: it opens
 * another one where it is told `connection: close`, and where the server closed while nothing was under
 * way. A request that the closing came across, so that not one byte was answered, is sent again and
 * counted as retried.
 */
export class HttpLoad extends RestartLoad {
  readonly #target: { readonly host: string; readonly port: number };

  constructor(address: string) {
    super();
    const [host = "", port = ""] = address.split(":");
    this.#target = { host, port: Number(port) };
    this.start(Array.from({ length: CALLERS }, () => () => this.#keep()));
  }

  async #keep(): Promise<void> {
    while (this.isGoing) {
      const connection = new HttpConnection(this.#target);
      for (let requests = 1; this.isGoing && connection.usable; requests++) {
        const answer = await connection.post("/json", BODY);
        if (answer.startsWith("HTTP/1.1 200 ")) this.answered++;
        else if (answer !== "") this.failures.push(answer);
        else if (requests === 1) this.resets++;
        else this.retried++;
        if (/^connection: close\r$/im.test(answer)) break;
        await this.pause();
      }
      connection.close();
    }
  }
}

class HttpConnection {
  readonly #socket: net.Socket;
  #heard = "";
  #open = true;
  #onChange = () => {};

  constructor(target: net.TcpNetConnectOpts) {
    this.#socket = net.connect({ ...target, noDelay: true });
    this.#socket.on("error", () => {});
    this.#socket.on("data", (chunk) => {
      this.#heard += String(chunk);
      this.#onChange();
    });
    for (const event of ["end", "close"]) {
      this.#socket.on(event, () => {
        this.#open = false;
        this.#onChange();
      });
    }
  }

  get usable(): boolean {
    return this.#open;
  }

  /** The whole answer; what came of it when the connection ended before, and that may be nothing. */
  post(path: string, body: string): Promise<string> {
    this.#heard = "";
    const head = `POST ${path} HTTP/1.1\r\nhost: weir\r\ncontent-length: ${body.length}\r\n\r\n`;
    return new Promise((resolve) => {
      this.#onChange = () => {
        if (!this.#open || isWhole(this.#heard)) resolve(this.#heard);
      };
      this.#socket.write(head + body);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const length = /^content-length: ([0-9]+)\r$/im.exec(answer)?.[1];
  return end > 0 && length !== undefined && answer.length >= end + 4 + Number(length);
}

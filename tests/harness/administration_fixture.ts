import { dirname } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { FakeClock } from "./fake_clock.ts";
import { runCommand } from "../../src/cli/commands.ts";

/** The moment at which commands of tests run: 2026-01-31T12:00:00Z. */
export const NOW = Date.UTC(2026, 0, 31, 12);
/** The token of the service that a test plays. */
export const TOKEN = "token-of-the-administration-0123456789";

/** Exit code and output of a command. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a run of a command. */
interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly stop?: AbortSignal;
  /** Folder for a token; one that does not exist when absent. */
  readonly folder?: string;
  /** Receives each line as it is printed. */
  readonly onLine?: (line: string) => void;
  /** The command runs on a terminal, where these are the answers to its questions, and `onScreen` gets what it shows. */
  readonly terminal?: { readonly answers?: string[]; readonly onScreen?: (lines: readonly string[]) => void };
  /** The time; when absent it stands still, so that no limit strikes. */
  readonly clock?: Clock;
}

/** The words of a command line, without the quotes around those with spaces. */
export function words(line: string): string[] {
  return [...line.matchAll(/(?:[^\s']|'[^']*')+/g)].map(([word]) => word.replaceAll("'", ""));
}

/** Runs a command, given as its line or its words, in this process. */
export async function ran(command: string | readonly string[], options: RunOptions = {}): Promise<Ran> {
  const args = typeof command === "string" ? words(command) : command;
  const written = { stdout: "", stderr: "" };
  const clock = options.clock ?? new FakeClock(NOW);
  const { terminal } = options;
  const stderr = (line: string) => void (written.stderr += `${line}\n`);
  const onTerminal = terminal && {
    screen: terminal.onScreen ?? (() => {}),
    ask(question: string) {
      stderr(question);
      return terminal.answers?.shift() ?? "";
    },
  };
  const code = await runCommand(args, {
    environment: options.environment ?? {},
    clock,
    stop: options.stop,
    folder: options.folder ?? "/no/such/folder",
    stdin: () => new Blob([options.stdin ?? ""]).stream(),
    output: {
      stdout(line) {
        written.stdout += `${line}\n`;
        options.onLine?.(line);
      },
      stderr(line) {
        stderr(line);
        options.onLine?.(line);
      },
      ...onTerminal,
    },
  });
  return { code, ...written };
}

/** Runs a command over a folder with these files; the folder is `DIR` in the command line and in what it prints. */
export async function ranOver(
  files: Readonly<Record<string, string>>,
  line: string,
  options: RunOptions = {},
): Promise<Ran> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.mkdir(dirname(`${folder}/${name}`), { recursive: true });
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    const { code, stdout, stderr } = await ran(line.replaceAll("DIR", folder), options);
    return { code, stdout: stdout.replaceAll(folder, "DIR"), stderr: stderr.replaceAll(folder, "DIR") };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A request as the service got it. */
export interface Got {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An answer that a test orders. */
export interface Given {
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Plays the administration on a free port of this machine; each request takes the next answer, the last one stays. */
export class PlayedAdministration implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #answers: Given[];
  readonly #got: Got[] = [];

  constructor(...answers: readonly Given[]) {
    this.#answers = [...answers];
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    this.#server = Deno.serve(options, (request) => this.#answer(request));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  get got(): readonly Got[] {
    return this.#got;
  }

  /** Runs a command against it. */
  async ran(args: string | readonly string[], options: RunOptions = {}): Promise<Ran> {
    const environment = { WEIR_URL: this.url, ADMIN_TOKEN: TOKEN, ...options.environment };
    return await ran(args, { ...options, environment });
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    this.#got.push({
      method: request.method,
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: Object.fromEntries(request.headers),
      body: await request.text(),
    });
    const [first = {}] = this.#answers;
    if (this.#answers.length > 1) this.#answers.shift();
    const { status = 200, body = "{}", headers = {} } = first;
    const type = status >= 400 ? "application/problem+json" : "application/json";
    const text = status === 204 ? null : body;
    return new Response(text, { status, headers: { "content-type": type, ...headers } });
  }
}

import { assertEquals, assertRejects } from "#assert";
import { Credential } from "../../../src/net/credential.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

/** A server with one password, and who logs in to it. */
class Bed {
  readonly log = new RecordedLogger();
  readonly tried: string[] = [];
  readonly credential: Credential<{ readonly password: string }>;
  /** The passwords that the server takes. */
  taken: readonly string[];
  asked = 0;

  constructor(password: string, taken: readonly string[] = [password]) {
    this.taken = taken;
    this.credential = new Credential({ password }, {
      server: "cache",
      logger: this.log,
      onRefused: () => void this.asked++,
    });
  }

  replace(password: string): void {
    this.credential.replace({ password });
  }

  /** Logs in; answers the password that was taken. */
  logIn(): Promise<string> {
    return this.credential.logIn(({ password }) => {
      this.tried.push(password);
      return this.taken.includes(password)
        ? Promise.resolve(password)
        : Promise.reject(new RangeError(`${password} is refused`));
    }, (error) => error instanceof RangeError);
  }

  get lines(): string[] {
    return this.log.lines.map(({ level, message }) => `${level} ${message}`);
  }
}

Deno.test("credential: the former one is used until a server accepts the new one", async () => {
  const bed = new Bed("old");
  await bed.logIn();
  bed.replace("new");
  assertEquals([await bed.logIn(), await bed.logIn(), bed.credential.refused], ["old", "old", 2]);
  bed.taken = ["new"];
  assertEquals([await bed.logIn(), await bed.logIn()], ["new", "new"]);
  assertEquals(bed.lines, [
    "warning New credentials refused; using the former ones",
    "info New credentials accepted",
  ]);
});

Deno.test("credential: servers that change one after the other are all served", async () => {
  const bed = new Bed("old");
  await bed.logIn();
  bed.replace("new");
  for (const taken of ["new", "old", "new"]) {
    bed.taken = [taken];
    assertEquals(await bed.logIn(), taken);
  }
});

Deno.test("credential: a value that no server has accepted does not displace one that was", async () => {
  const bed = new Bed("old");
  await bed.logIn();
  for (const half of ["n", "ne", "new"]) bed.replace(half);
  assertEquals([await bed.logIn(), bed.tried], ["old", ["old", "new", "old"]]);
});

Deno.test("credential: a refusal asks for the value to be read, and the first one is thrown", async () => {
  const bed = new Bed("old");
  await bed.logIn();
  bed.replace("new");
  bed.taken = [];
  const { message } = await assertRejects(() => bed.logIn());
  assertEquals([message, bed.asked, bed.credential.refused], ["new is refused", 1, 2]);
});

Deno.test("credential: a value that comes during an attempt is tried as well", async () => {
  const bed = new Bed("old", ["new"]);
  const attempt = bed.logIn();
  bed.replace("new");
  assertEquals([await attempt, bed.tried], ["new", ["old", "new"]]);
});

Deno.test("credential: another error ends the attempts", async () => {
  const credential = new Credential({ password: "a" });
  const failed = () => Promise.reject(new TypeError("connection refused"));
  const logIn = () => credential.logIn(failed, (error) => error instanceof RangeError);
  const { message } = await assertRejects(logIn);
  assertEquals([message, credential.refused], ["connection refused", 0]);
});

Deno.test("credential: listeners are called for each replacement until they end", () => {
  const credential = new Credential({ password: "a" });
  const ending = new AbortController();
  let calls = 0;
  credential.onChange(() => void calls++, ending.signal);
  credential.replace({ password: "b" });
  ending.abort();
  credential.replace({ password: "c" });
  assertEquals(calls, 1);
});

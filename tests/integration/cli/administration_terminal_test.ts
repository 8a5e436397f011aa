import { assertEquals, assertMatch } from "#assert";
import { NOW, PlayedAdministration } from "../../harness/administration_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";

const ID = "3b241101-e2bb-4255-8caf-4136c566a962";
const DELIVERY = {
  id: ID,
  event: "a",
  endpointId: "e",
  state: "retrying",
  attempts: [{ number: 1, startedAt: "2026-01-31T11:57:00.000Z" }],
  nextAttemptAt: "2026-01-31T12:00:20.500Z",
};

Deno.test("terminal: times are relative in lists, and also exact in records", async () => {
  const list = { body: JSON.stringify({ items: [DELIVERY] }) };
  await using service = new PlayedAdministration(list, list, { body: JSON.stringify(DELIVERY) });
  const [, row] = (await service.ran("deliveries list", { terminal: {} })).stdout.split("\n");
  assertMatch(row ?? "", / 1 {9}- {10}in 20 s$/);
  const [, plain] = (await service.ran("deliveries list")).stdout.split("\n");
  assertMatch(plain ?? "", /2026-01-31T12:00:20\.500Z$/);
  const { stdout } = await service.ran(`deliveries show ${ID}`, { terminal: {} });
  assertMatch(stdout, /^nextAttemptAt {2}2026-01-31T12:00:20\.500Z \(in 20 s\)$/m);
  assertMatch(stdout, /^ {2}1 {7}3 min ago$/m);
});

/** Deletions, and what a person is asked. */
const QUESTIONS: Readonly<Record<string, string>> = {
  [`endpoints delete ${ID}`]: `This deletes endpoint ${ID}; its open deliveries fail. Continue? [y/N] `,
  [`triggers delete ${ID}`]:
    `This deletes trigger ${ID} with its keys and secrets; its executions remain. Continue? [y/N] `,
  [`event-keys delete ${ID}`]: `This deletes event key ${ID}. Continue? [y/N] `,
  [`events erase ${ID}`]:
    `This erases the payload of event ${ID}; its open deliveries fail. Continue? [y/N] `,
  [`triggers revoke ${ID} k`]: `This revokes key k of trigger ${ID} immediately. Continue? [y/N] `,
  [`triggers revoke-secret ${ID} s`]: `This revokes secret s of trigger ${ID} immediately. Continue? [y/N] `,
};

for (const [line, question] of Object.entries(QUESTIONS)) {
  Deno.test(`terminal: weir ${line}: asks, unless --yes answers`, async () => {
    await using service = new PlayedAdministration({ status: 204 });
    const words = line.split(" ").slice(0, 2).join(" ");
    for (const answer of ["", "n", "yeah", "no"]) {
      const { code, stdout, stderr } = await service.ran(line, { terminal: { answers: [answer] } });
      const refused = `${question}\nCannot run "${words}": not confirmed\n`;
      assertEquals([code, stdout, stderr, service.got.length], [1, "", refused, 0], answer);
    }
    const outcomes = [
      await service.ran(line, { terminal: { answers: ["y"] } }),
      await service.ran(line, { terminal: { answers: ["YES"] } }),
      await service.ran(`${line} --yes`, { terminal: {} }),
      await service.ran(line),
    ];
    assertEquals(outcomes.map(({ code }) => code), [0, 0, 0, 0]);
    assertEquals(outcomes.map(({ stderr }) => stderr), [`${question}\n`, `${question}\n`, "", ""]);
    assertEquals(service.got.map(({ method }) => method), Array(4).fill("DELETE"));
  });
}

const PAGES = ["a", "a", "b"].map((event) => ({
  body: `{"items":[{"id":"1","event":"${event}"}],"nextCursor":"c"}`,
}));
const HEAD = "id  event  isErased  createdAt";

/** A clock on which each turn is as long as a pause of a watch. */
class TickingClock extends FakeClock implements Disposable {
  readonly #timer = setInterval(() => this.advance(2_000), 1);

  constructor() {
    super(NOW);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

Deno.test("--watch: on a terminal, each answer replaces the previous one, until an interruption", async () => {
  await using service = new PlayedAdministration(...PAGES);
  const stop = new AbortController();
  const screens: (readonly string[])[] = [];
  using clock = new TickingClock();
  const { code, stdout } = await service.ran("events list --watch", {
    clock,
    stop: stop.signal,
    terminal: { onScreen: (lines) => screens.push(lines) === 3 && stop.abort() },
  });
  const screenOf = (event: string) => [HEAD, `1   ${event}      -         -`, "More: --cursor c, or --all"];
  assertEquals([code, stdout, screens], [0, "", [screenOf("a"), screenOf("a"), screenOf("b")]]);
});

Deno.test("--watch: elsewhere, a list is printed again only if it changed", async () => {
  await using service = new PlayedAdministration(...PAGES);
  const stop = new AbortController();
  using clock = new TickingClock();
  const { code, stdout } = await service.ran("events list --watch", {
    clock,
    stop: stop.signal,
    onLine: (line) => line.startsWith("1   b") && stop.abort(),
  });
  const printed = ["a", "b"].map((event) =>
    `${HEAD}\n1   ${event}      -         -\nMore: --cursor c, or --all\n`
  );
  assertEquals([code, stdout, service.got.length], [0, printed.join(""), 3]);
});

Deno.test("--watch: a failed call ends it", async () => {
  await using service = new PlayedAdministration(...PAGES.slice(0, 1), { status: 503 });
  using clock = new TickingClock();
  const { code, stderr } = await service.ran("events list --watch", {
    clock,
    terminal: {},
  });
  assertEquals([code, stderr], [1, 'Cannot run "events list": 503: not an answer of Weir\n']);
});

/** Runs the program on a pseudo terminal. */
async function onTerminal(args: readonly string[], url: string, typed: string): Promise<string> {
  const line = weirCommand(args);
  const command = [line.command, ...line.args].map((word) => `'${word}'`).join(" ");
  const child = new Deno.Command("script", {
    args: ["-qefc", command, "/dev/null"],
    env: { ...runtimeEnvironment(line), WEIR_URL: url, ADMIN_TOKEN: "t".repeat(40), TERM: "xterm" },
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(typed));
  const { code, stdout } = await child.output();
  await writer.close().catch(() => {});
  return `${code} ${new TextDecoder().decode(stdout).replaceAll("\r", "")}`;
}

Deno.test("terminal: the program asks on a real one, and shows relative times there", async () => {
  const soon = new Date(Date.now() + 3_600_000 + 60_000).toISOString();
  const list = { body: JSON.stringify({ items: [{ ...DELIVERY, nextAttemptAt: soon }] }) };
  await using service = new PlayedAdministration(list, { status: 204 });
  assertMatch(await onTerminal(["deliveries", "list"], service.url, ""), /^0 .* in 1 h\n$/s);
  const refused = await onTerminal(["endpoints", "delete", ID], service.url, "n\n");
  assertMatch(refused, /^1 .*Continue\? \[y\/N\] .*not confirmed\n$/s);
  assertEquals(service.got.length, 1);
  const deleted = await onTerminal(["endpoints", "delete", ID], service.url, "y\n");
  assertMatch(deleted, /^0 .*Continue\? \[y\/N\] .*is deleted\n$/s);
  assertEquals(service.got.map(({ method }) => method), ["GET", "DELETE"]);
});

/** Command lines, answers, and what is printed. */
const IDENTIFIERS: readonly (readonly [line: string, body: string, stdout: string, stderr?: string])[] = [
  [
    "events list --output id",
    '{"items":[{"id":"1","event":"a"},{"id":"2\\n","event":"b"}],"nextCursor":"c"}',
    "1\n2\\n\n",
  ],
  ["events post a.b -o id", '{"id":"1","deliveries":1}', "1\n"],
  ["triggers call t -o id", '{"executionId":"1"}', "1\n"],
  [
    "endpoints add https://a -o id",
    '{"id":"1","secret":"whsec_1"}',
    "1\n",
    "The secret was not printed: --output json prints it, only once\n",
  ],
];

for (const [line, body, stdout, stderr = ""] of IDENTIFIERS) {
  Deno.test(`--output id: weir ${line}`, async () => {
    await using service = new PlayedAdministration({ body });
    assertEquals(await service.ran(line), { code: 0, stdout, stderr });
  });
}

import { assertEquals } from "#assert";
import type { Output } from "../../../src/cli/command.ts";
import { runCommand } from "../../../src/cli/commands.ts";
import { Progress } from "../../../src/cli/progress.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const RULES = new URL("../../../config/rules", import.meta.url).pathname;

/** Records what is written to a terminal, or elsewhere. */
function recorded(isTerminal: boolean): { readonly output: Output; readonly lines: string[] } {
  const lines: string[] = [];
  const stderr = (line: string) => void lines.push(line);
  const status = isTerminal ? (text: string) => void lines.push(`[${text}]`) : undefined;
  return { lines, output: { stdout: () => {}, stderr, status } };
}

for (
  const [name, isTerminal, lines] of [
    ["lines elsewhere: after 2 s, then every 10 s", false, ["working (2 s)", "half (12 s)"]],
    [
      "one line of a terminal, which is removed at the end",
      true,
      ["[working (2 s)]", "[working (2 s)]", "[half (3 s)]", "[half (3 s)]", "[]"],
    ],
  ] as const
) {
  Deno.test(`progress: ${name}`, () => {
    const clock = new FakeClock();
    const { output, lines: written } = recorded(isTerminal);
    {
      using progress = new Progress("working", { clock, output });
      clock.advance(1_999);
      assertEquals(written, []);
      for (const ms of [1, 500]) clock.advance(ms);
      progress.update("half");
      for (const ms of [500, 500]) clock.advance(ms);
      if (!isTerminal) clock.advance(8_600);
    }
    clock.advance(60_000);
    assertEquals(written, [...lines]);
  });
}

Deno.test("progress: work that leaves no time for timers shows it, and short work shows none", async () => {
  const descriptors = [{ entries: [{ key: "account", value: "bob" }] }];
  const line = new TextEncoder().encode(`${JSON.stringify({ time: 0, domain: "shop", descriptors })}\n`);
  for (const [tookMs, expected] of [[1_999, []], [3_000, ["simulating: 2 lines (3 s)"]]] as const) {
    let elapsed = 0;
    const clock = { now: () => elapsed, elapsed: () => elapsed, after: () => () => {} };
    const requests = linesWith(line, () => elapsed = tookMs);
    const { output, lines } = recorded(false);
    const options = { environment: {}, clock, output, stdin: () => ReadableStream.from(requests) };
    assertEquals(await runCommand(["simulate", "--config", RULES, "--requests", "-"], options), 0);
    assertEquals(lines, [...expected]);
  }
});

/** A line twice, and what happens in between. */
async function* linesWith(line: Uint8Array, between: () => void): AsyncGenerator<Uint8Array> {
  yield line;
  between();
  yield await Promise.resolve(line);
}

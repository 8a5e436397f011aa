import { assertEquals } from "#assert";
import { FAILED_TOKENS, FailedTokens } from "../../../../src/http/server/failed_tokens.ts";
import { bearerGuard } from "../../../../src/http/routes/bearer_token.ts";
import { createRouter } from "../../../../src/http/server/router.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";

const NEVER = new AbortController().signal;

/** When each of some failures of one address is answered, in milliseconds. */
async function delays(
  tokens: FailedTokens,
  clock: FakeClock,
  peer: string,
  count: number,
): Promise<number[]> {
  const seen: number[] = [];
  for (let attempt = 0; attempt < count; attempt++) {
    const before = clock.elapsed();
    let isAnswered = false;
    const answer = tokens.delay(peer, NEVER).then(() => isAnswered = true);
    for (let turn = 0; turn < 3; turn++) await Promise.resolve();
    while (!isAnswered) {
      clock.advance(50);
      for (let turn = 0; turn < 3; turn++) await Promise.resolve();
    }
    await answer;
    seen.push(clock.elapsed() - before);
  }
  return seen;
}

Deno.test("answers to wrong tokens take longer and longer, by address, until they stop", async () => {
  const clock = new FakeClock();
  const tokens = new FailedTokens(clock);
  const slowed = [0, 0, 0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000];
  assertEquals(await delays(tokens, clock, "10.0.0.1", 13), slowed);
  assertEquals(await delays(tokens, clock, "10.0.0.2", 1), [0]);
  assertEquals(await delays(tokens, clock, "2001:db8:1:2::1", 6), slowed.slice(0, 6));
  assertEquals(await delays(tokens, clock, "2001:db8:1:2:3::7", 1), [200]);
  for (const host of ["1:1:2:3", "2:1:2:3", "3:1:2:3", "4:1:2:3", "5:1:2:3"]) {
    assertEquals(await delays(tokens, clock, `2001:db8::${host}`, 1), [0]);
  }
  assertEquals(await delays(tokens, clock, "2001:db8:0:0:9::", 1), [100]);
  clock.advance(FAILED_TOKENS.forgetMs);
  assertEquals(await delays(tokens, clock, "10.0.0.1", 1), [0]);
  assertEquals(clock.waiting, 0);
});

Deno.test("a delay ends with its listener, and the table is bounded", async () => {
  const clock = new FakeClock();
  const tokens = new FailedTokens(clock);
  const closing = new AbortController();
  for (let attempt = 0; attempt < 5; attempt++) await tokens.delay("10.0.0.1", closing.signal);
  const delayed = tokens.delay("10.0.0.1", closing.signal);
  closing.abort();
  await delayed;
  for (let index = 0; index < 2 * FAILED_TOKENS.maxAddresses; index++) await tokens.delay(`a${index}`, NEVER);
  assertEquals([tokens.size, clock.waiting], [FAILED_TOKENS.maxAddresses, 0]);
});

Deno.test("wrong tokens are answered late, the right one and calls without one at the same time", async () => {
  const clock = new FakeClock();
  const route = { path: "/a", methods: ["GET"], handle: bearerGuard("right")(() => new Response("in")) };
  const handle = createRouter([route], { logger: new RecordedLogger(), clock });
  const ask = (token: string | undefined, peer: string) =>
    handle(
      new Request("http://a/a", token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
      NEVER,
      peer,
    );
  for (let attempt = 0; attempt < 5; attempt++) assertEquals((await ask("wrong", "10.0.0.1")).status, 401);
  const late = ask("wrong", "10.0.0.1");
  assertEquals((await ask("right", "10.0.0.1")).status, 200);
  assertEquals((await ask("right", "10.0.0.2")).status, 200);
  assertEquals((await ask("wrong", "10.0.0.2")).status, 401);
  assertEquals([(await ask(undefined, "10.0.0.1")).status, clock.waiting], [401, 1]);
  clock.advance(100);
  assertEquals((await late).status, 401);
});

import { assertEquals } from "#assert";
import { ServedHttp, wholeJson } from "../../harness/http_fixture.ts";
import { CallsDouble, TRIGGER, webhookHandler } from "../../harness/webhook_routes.ts";

Deno.test("webhook routes: a body is refused by its announced length, before it is read", async () => {
  await using served = new ServedHttp(webhookHandler(new CallsDouble()));
  using connection = await served.dial();
  await connection.write(
    `POST ${TRIGGER} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key\r\ncontent-type: application/json\r\n` +
      "content-length: 1000000\r\n\r\n",
  );
  const answer = await connection.read(wholeJson);
  assertEquals([answer.split("\r\n")[0], answer.includes('"code":"too_large"')], [
    "HTTP/1.1 413 Content Too Large",
    true,
  ]);
});

Deno.test("webhook routes: a signed call is read in parts and passed on whole, whatever its length is", async () => {
  const calls = new CallsDouble();
  await using served = new ServedHttp(webhookHandler(calls));
  const head = `POST ${TRIGGER} HTTP/1.1\r\nhost: a\r\n`;
  const bodies = [
    ["content-length: 6\r\n\r\n", ["abc", "def"]],
    ["content-length: 6\r\nexpect: 100-continue\r\n\r\n", ["abc", "def"]],
    ["transfer-encoding: chunked\r\n\r\n", ["3\r\nabc\r\n", "3\r\ndef\r\n0\r\n\r\n"]],
  ] as const;
  for (const [rest, parts] of bodies) {
    using connection = await served.dial();
    await connection.write(`${head}${rest}`);
    for (const part of parts) await connection.write(part);
    const answer = await connection.read(wholeJson);
    assertEquals(answer.includes("202 Accepted"), true, rest);
  }
  assertEquals(
    calls.asked,
    Array(3).fill(["signed", { name: "order-intake", signature: undefined, body: "abcdef" }]),
  );
});

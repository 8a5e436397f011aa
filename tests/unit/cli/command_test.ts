import { assert, assertEquals } from "#assert";
import { CommandError, readBytes, readLines, readText } from "../../../src/cli/command.ts";

function stdin(...parts: readonly (string | Uint8Array)[]): { stdin: () => ReadableStream<Uint8Array> } {
  const bytes = parts.map((part) => typeof part === "string" ? new TextEncoder().encode(part) : part);
  return { stdin: () => ReadableStream.from(bytes) };
}

Deno.test("standard input is read to its end, whatever its portions", async () => {
  const bytes = await readBytes("-", stdin("gr", new Uint8Array([0xc3]), new Uint8Array([0xbc]), "n"));
  assertEquals(new TextDecoder().decode(bytes), "grün");
});

Deno.test("the lines of a text come without spaces around them, and none is empty", async () => {
  assertEquals(await readLines("-", stdin(" a \r\n\n\tb c\n")), ["a", "b c"]);
});

Deno.test("what is not UTF-8 is refused", async () => {
  const error = await readText("-", stdin(new Uint8Array([0xff]))).catch((error: unknown) => error);
  assert(error instanceof CommandError);
  assertEquals(error.message, 'Cannot read "-": not UTF-8');
});

Deno.test("what never ends is given up, and its source is notified", async () => {
  const portion = new Uint8Array(16 * 1_024 * 1_024);
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(portion),
    cancel: () => void (isCancelled = true),
  });
  const error = await readBytes("-", { stdin: () => endless }).catch((error: unknown) => error);
  assert(error instanceof CommandError);
  assertEquals(error.message, 'Cannot read "standard input": longer than 67108864 bytes');
  assertEquals(isCancelled, true);
});

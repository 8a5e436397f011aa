import { assert, assertEquals, assertRejects } from "#assert";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { beginningOf, withoutCodings } from "../../../../src/net/outbound/response_body.ts";

const MEGABYTE = 1_048_576;
const FAST = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
const ENCODERS: Readonly<
  Record<string, readonly [coding: string, encode: (bytes: Uint8Array) => Uint8Array]>
> = {
  "gzip": ["gzip", (bytes) => gzipSync(bytes)],
  "deflate": ["deflate", (bytes) => deflateSync(bytes)],
  "deflate without a header": ["deflate", (bytes) => deflateRawSync(bytes)],
  "br": ["br", (bytes) => brotliCompressSync(bytes, FAST)],
};

for (const [name, [coding, encode]] of Object.entries(ENCODERS)) {
  const encoded = (length: number) => new Uint8Array(encode(new Uint8Array(length)));

  Deno.test(`content codings: ${name} is decoded up to the limit, and no further`, async () => {
    assertEquals((await withoutCodings(encoded(MEGABYTE), [coding], MEGABYTE)).byteLength, MEGABYTE);
    const error = await assertRejects(() => withoutCodings(encoded(MEGABYTE + 1), [coding], MEGABYTE));
    assertEquals(String(error), `SendError: the response body has more than ${MEGABYTE} bytes`);
  });

  Deno.test(`content codings: of a bomb in ${name}, hardly more is decoded than is taken`, async () => {
    const { byteLength } = await beginningOf(encoded(100 * MEGABYTE), [coding], 16_385);
    assert(byteLength >= 16_385 && byteLength <= 2 * MEGABYTE, `${byteLength} bytes`);
  });

  Deno.test(`content codings: ${name} that was cut has no body, but a beginning`, async () => {
    const bytes = crypto.getRandomValues(new Uint8Array(60_000));
    const cut = new Uint8Array(encode(bytes)).subarray(0, 40_000);
    const error = await assertRejects(() => withoutCodings(cut, [coding], MEGABYTE));
    assertEquals(String(error), `SendError: the response body is not valid ${coding}`);
    const beginning = await beginningOf(cut, [coding], 16_385);
    assert(beginning.byteLength >= 16_385);
    assertEquals(new Uint8Array(beginning.subarray(0, 16_385)), bytes.subarray(0, 16_385));
  });
}

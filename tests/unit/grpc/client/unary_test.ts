import { assertEquals } from "@std/assert";
import {
  answerHeaders,
  answerTrailers,
  CALL_PATH,
  ClientBed,
  outcomeOf,
  wholeAnswer,
} from "../../../harness/client_bed.ts";
import { concatBytes, content, message, PEER_SETTING, windowUpdate } from "../../../harness/h2_peer.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const HEAD = ":method=POST :scheme=http :path=/test.Peer/Call :authority=peer:80 content-type=application/grpc " +
  "te=trailers user-agent=grpc-weir";

Deno.test("unary call: the frames of three calls, and their answers", async () => {
  const { bed, client } = await ClientBed.open();
  const calls = [1, 2, 3].map((count) => outcomeOf(client.unary(CALL_PATH, ascii(`call ${count}`))));
  assertEquals(await bed.frames(), [1, 3, 5].flatMap((id, index) => [
    `HEADERS ${id} ${HEAD}`,
    `DATA ${id} end message "call ${index + 1}"`,
  ]));
  bed.send(concatBytes(wholeAnswer(5, "third"), wholeAnswer(1, "first")), wholeAnswer(3, "second"));
  assertEquals(await Promise.all(calls), ["first", "second", "third"]);
  assertEquals(client.isOpen, true);
});

import { assert, assertEquals } from "#assert";
import { KnownTable } from "../../../src/grpc/known/known_table.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

Deno.test("known table: requests with equal hashes are distinguished by all of their bytes", () => {
  const table = new KnownTable<object>(() => 0.5);
  const plan = {};
  const requests = Array.from({ length: 3_000 }, (_, index) => new TextEncoder().encode(`request ${index}`));
  for (const request of requests) {
    find(table, request);
    if (table.isAdmitted) throw new Error("A request is admitted at its second sight");
  }
  for (const request of requests) {
    find(table, request);
    table.put(request, plan);
    request[0] = 0;
    assertEquals(find(table, request), undefined);
    request[0] = 114;
    assertEquals(find(table, request), plan);
  }
});

Deno.test("known table: lookups pause while few requests are known, and are tried again", () => {
  const table = new KnownTable<object>(() => 0.5);
  const plan = {};
  const known = new TextEncoder().encode("known");
  find(table, known);
  table.put(known, plan);
  const isFound = () => find(table, known) === plan;
  const ask = (count: number) => {
    const other = new Uint8Array(4);
    for (let index = 0; index < count; index++) {
      new DataView(other.buffer).setUint32(0, index);
      find(table, other);
    }
  };
  assertEquals(isFound(), true);
  ask(40_000);
  assertEquals(isFound(), false);
  ask(300_000);
  assertEquals(isFound(), false);
  for (let time = 0; time < 300_000; time++) if (isFound()) table.use();
  assertEquals(isFound(), true);
});

Deno.test("known table: a request that is put in vain is put again after ever more calls", () => {
  const table = new KnownTable<object>(() => 0.5);
  const request = new TextEncoder().encode("request");
  const callsUntilPut = () => {
    let calls = 1;
    for (find(table, request); !table.isAdmitted; find(table, request)) calls++;
    table.put(request, {});
    return calls;
  };
  const use = (times: number) => {
    for (let time = 0; time < times; time++) {
      find(table, request);
      table.use();
    }
  };
  const calls = Array.from({ length: 10 }, callsUntilPut);
  assertEquals(calls, [2, 2, 4, 8, 16, 32, 64, 128, 256, 256]);
  use(3);
  assertEquals(callsUntilPut(), 256);
  use(4);
  assertEquals(callsUntilPut(), 1);
});

Deno.test("known table: of ten thousand requests, nearly all are recognized, whatever their length", () => {
  for (let length = 36; length < 40; length++) {
    const table = new KnownTable<object>(seededRandom(length));
    const requests = Array.from({ length: 10_000 }, (_, index) => {
      return new TextEncoder().encode(`${index}`.padStart(length, "key_"));
    });
    const recognized = () => requests.filter((request) => find(table, request) !== undefined).length;
    for (let pass = 0; pass < 2; pass++) {
      for (const request of requests) {
        find(table, request);
        if (table.isAdmitted) table.put(request, {});
      }
    }
    assert(recognized() > 9_800, `${recognized()} of 10000 requests of ${length} bytes`);
  }
});

function find(table: KnownTable<object>, request: Uint8Array): object | undefined {
  return table.find(request, 0, request.length);
}

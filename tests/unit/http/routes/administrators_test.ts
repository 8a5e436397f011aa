import { assertEquals } from "#assert";
import { Administrators } from "../../../../src/http/routes/administrators.ts";

const ALICE = { name: "alice", role: "admin" } as const;
const CI = { name: "ci", role: "read" } as const;

Deno.test("administrators: each token has its owner, and no other text has one", () => {
  const known = new Administrators([{ ...ALICE, token: "token-of-alice" }, { ...CI, token: "token-of-ci" }]);
  assertEquals(known.isEnabled, true);
  assertEquals(known.authenticate("token-of-alice"), ALICE);
  assertEquals(known.authenticate("token-of-ci"), CI);
  for (
    const text of ["", "token-of-alic", "token-of-alicee", "Token-of-alice", "alice:admin:token-of-alice"]
  ) {
    assertEquals(known.authenticate(text), undefined, text);
  }
});

Deno.test("administrators: replaced tokens are those that count", () => {
  const known = new Administrators([{ ...ALICE, token: "first" }]);
  known.replace([{ ...ALICE, token: "second" }]);
  assertEquals([known.authenticate("first"), known.authenticate("second")], [undefined, ALICE]);
  known.replace([]);
  assertEquals([known.isEnabled, known.authenticate("second")], [false, undefined]);
});

Deno.test("administrators: where tokens may come, the API exists without any", () => {
  const known = new Administrators([], { mayCome: true });
  assertEquals([known.isEnabled, known.authenticate("")], [true, undefined]);
});

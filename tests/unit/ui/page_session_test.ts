import { assertEquals } from "@std/assert";
import { Session } from "../../../src/ui/page/session.ts";

function tokens(session: Session) {
  return [session.tokenFor("live"), session.tokenFor("administration"), session.holdsToken];
}

Deno.test("page: the token of the administration is used for the live figures too", () => {
  const session = new Session();
  assertEquals(tokens(session), [undefined, undefined, false]);
  session.take("live", "debug");
  session.take("administration", "admin");
  assertEquals(tokens(session), ["admin", "admin", true]);
});

Deno.test("page: a token for the live figures is tried for the administration once", () => {
  const session = new Session();
  session.take("live", "debug");
  assertEquals(tokens(session), ["debug", "debug", true]);
  session.refuse("administration", "debug");
  assertEquals(tokens(session), ["debug", undefined, true]);
  assertEquals(
    session.problem("administration"),
    "That token opens the live figures, but not the administration.",
  );
  session.take("live", "another");
  assertEquals(tokens(session), ["another", "another", true]);
});

Deno.test("page: a token that is refused is dropped, but not for an old answer to another one", () => {
  const session = new Session();
  session.take("administration", "first");
  session.take("administration", "second");
  session.refuse("administration", "first");
  assertEquals(tokens(session), ["second", "second", true]);
  session.refuse("live", "second");
  assertEquals(tokens(session), [undefined, undefined, false]);
  assertEquals(session.problem("administration"), "The service did not take that token.");
});

Deno.test("page: forgetting leaves nothing, and tells who listens", () => {
  const session = new Session();
  let told = 0;
  const end = session.onChange(() => told++);
  session.take("administration", "admin");
  session.forget();
  end();
  session.take("live", "debug");
  session.forget();
  assertEquals([told, session.holds("admin"), ...tokens(session)], [2, false, undefined, undefined, false]);
});

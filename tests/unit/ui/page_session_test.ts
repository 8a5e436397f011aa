import { assertEquals } from "#assert";
import { Session } from "../../../src/ui/page/session.ts";

function tokens(session: Session) {
  return [session.tokenFor("live"), session.tokenFor("administration"), session.holdsToken];
}

Deno.test("page: the token of the administration is used for the live metrics too", () => {
  const session = new Session();
  assertEquals(tokens(session), [undefined, undefined, false]);
  session.store("live", "debug");
  session.store("administration", "admin");
  assertEquals(tokens(session), ["admin", "admin", true]);
});

Deno.test("page: a token for the live metrics is tried for the administration once", () => {
  const session = new Session();
  session.store("live", "debug");
  assertEquals(tokens(session), ["debug", "debug", true]);
  session.reject("administration", "debug");
  assertEquals(tokens(session), ["debug", undefined, true]);
  assertEquals(
    session.problem("administration"),
    "This token gives access to the live statistics, but not to the administration.",
  );
  session.store("live", "another");
  assertEquals(tokens(session), ["another", "another", true]);
});

Deno.test("page: a token that is refused is dropped, but not for an old answer to another one", () => {
  const session = new Session();
  session.store("administration", "first");
  session.store("administration", "second");
  session.reject("administration", "first");
  assertEquals(tokens(session), ["second", "second", true]);
  session.reject("live", "second");
  assertEquals(tokens(session), [undefined, undefined, false]);
  assertEquals(session.problem("administration"), "The service rejected the token.");
});

Deno.test("page: forgetting leaves nothing, and tells who listens", () => {
  const session = new Session();
  let told = 0;
  const end = session.onChange(() => told++);
  session.store("administration", "admin");
  session.forget();
  end();
  session.store("live", "debug");
  session.forget();
  assertEquals([told, session.holds("admin"), ...tokens(session)], [2, false, undefined, undefined, false]);
});

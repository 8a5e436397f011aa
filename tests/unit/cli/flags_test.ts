import { assertEquals, assertThrows } from "#assert";
import { readDescriptors } from "../../../src/cli/administration_flags.ts";
import { FlagError, parseFlags } from "../../../src/cli/flags.ts";
import { words } from "../../harness/administration_fixture.ts";

const ALIASES = { o: "domain", "dial-string": "domain" };
const SPEC = {
  domain: "string",
  descriptors: "strings",
  tls: "boolean",
  constructors: "string",
  "in-flight": "string",
} as const;

type Flags = ReturnType<typeof parseFlags>["flags"];

/** Command lines, their flags, and the arguments that are left. */
const READ: Readonly<Record<string, readonly [flags: Flags, ...rest: string[]]>> = {
  "": [{}],
  "-domain d": [{ domain: "d" }],
  "-domain=d": [{ domain: "d" }],
  "--domain d": [{ domain: "d" }],
  "--domain=d": [{ domain: "d" }],
  "-domain=": [{ domain: "" }],
  "-domain ''": [{ domain: "" }],
  "-domain=a=b": [{ domain: "a=b" }],
  "'-domain=a\nb'": [{ domain: "a\nb" }],
  "-domain -1": [{ domain: "-1" }],
  "-domain=a -domain=b": [{ domain: "b" }],
  "-descriptors a=b": [{ descriptors: ["a=b"] }],
  "-descriptors a=b --descriptors=c=d": [{ descriptors: ["a=b", "c=d"] }],
  "-tls x": [{ tls: true }, "x"],
  "-tls=false": [{ tls: false }],
  "--tls=T": [{ tls: true }],
  "a -tls b -domain d c": [{ tls: true, domain: "d" }, "a", "b", "c"],
  "-tls -- -domain --": [{ tls: true }, "-domain", "--"],
  "-": [{}, "-"],
  "-o d": [{ domain: "d" }],
  "-o=d": [{ domain: "d" }],
  "-dial_string d": [{ domain: "d" }],
  "--dial-string=d": [{ domain: "d" }],
  "--in-flight 3": [{ "in-flight": "3" }],
  "--in_flight=3": [{ "in-flight": "3" }],
};

for (const [line, [flags, ...rest]] of Object.entries(READ)) {
  Deno.test(`parseFlags reads "${line}"`, () => {
    assertEquals(parseFlags(words(line), SPEC, ALIASES), { flags, rest });
  });
}

const REFUSED: Readonly<Record<string, string>> = {
  "-domian d": "Unknown flag --domian; did you mean --domain?",
  "--zzz=1": "Unknown flag --zzz",
  "-toString": "Unknown flag --toString",
  "-tls -domain": "Flag --domain requires a value",
  "-tls=yes": 'Invalid --tls "yes": expected true or false',
  "-x": "Unknown flag --x",
  "--in_fligth 3": "Unknown flag --in_fligth; did you mean --in-flight?",
  "-=d": 'Cannot read flag "-=d": no name',
  "---domain": 'Cannot read flag "---domain": no name',
};

for (const [line, message] of Object.entries(REFUSED)) {
  Deno.test(`parseFlags refuses "${line}"`, () => {
    const error = assertThrows(() => parseFlags(words(line), SPEC, ALIASES));
    assertEquals([error instanceof FlagError, error.message], [true, message]);
  });
}

Deno.test("flags: a descriptor keeps the order of its keys, each of which it has once", () => {
  assertEquals(readDescriptors(["tier=gold,7=a=b"]).map(({ text }) => text), ['{"tier":"gold","7":"a=b"}']);
  const error = assertThrows(() => readDescriptors(["a=1,a=2"]));
  assertEquals([error instanceof FlagError, error.message.includes("expected each key once")], [true, true]);
});

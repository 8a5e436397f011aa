import { assertEquals, assertThrows } from "@std/assert";
import { readDescriptors } from "../../../src/cli/administration_flags.ts";
import { FlagError, parseFlags } from "../../../src/cli/flags.ts";

const SPEC = { domain: "string", descriptors: "strings", tls: "boolean", constructors: "string" } as const;

const READ = [
  { name: "nothing", args: [], flags: {}, rest: [] },
  { name: "one dash, value apart", args: ["-domain", "d"], flags: { domain: "d" }, rest: [] },
  { name: "one dash, value attached", args: ["-domain=d"], flags: { domain: "d" }, rest: [] },
  { name: "two dashes, value apart", args: ["--domain", "d"], flags: { domain: "d" }, rest: [] },
  { name: "two dashes, value attached", args: ["--domain=d"], flags: { domain: "d" }, rest: [] },
  { name: "an empty attached value", args: ["-domain="], flags: { domain: "" }, rest: [] },
  { name: "an empty value apart", args: ["-domain", ""], flags: { domain: "" }, rest: [] },
  { name: "only the first equals sign separates", args: ["-domain=a=b"], flags: { domain: "a=b" }, rest: [] },
  { name: "a value over two lines", args: ["-domain=a\nb"], flags: { domain: "a\nb" }, rest: [] },
  { name: "a value that begins with a dash", args: ["-domain", "-1"], flags: { domain: "-1" }, rest: [] },
  { name: "the last text counts", args: ["-domain=a", "-domain=b"], flags: { domain: "b" }, rest: [] },
  { name: "a list of one", args: ["-descriptors", "a=b"], flags: { descriptors: ["a=b"] }, rest: [] },
  {
    name: "a list in the order given",
    args: ["-descriptors", "a=b", "--descriptors=c=d"],
    flags: { descriptors: ["a=b", "c=d"] },
    rest: [],
  },
  { name: "a boolean takes no further argument", args: ["-tls", "x"], flags: { tls: true }, rest: ["x"] },
  { name: "a boolean switched off", args: ["-tls=false"], flags: { tls: false }, rest: [] },
  { name: "a boolean in Go's short form", args: ["--tls=T"], flags: { tls: true }, rest: [] },
  {
    name: "flags and arguments mix",
    args: ["a", "-tls", "b", "-domain", "d", "c"],
    flags: { tls: true, domain: "d" },
    rest: ["a", "b", "c"],
  },
  {
    name: "two dashes alone end the flags",
    args: ["-tls", "--", "-domain", "--"],
    flags: { tls: true },
    rest: ["-domain", "--"],
  },
  { name: "one dash alone is an argument", args: ["-"], flags: {}, rest: ["-"] },
];

for (const { name, args, flags, rest } of READ) {
  Deno.test(`parseFlags reads ${name}`, () => {
    assertEquals(parseFlags(args, SPEC), { flags, rest });
  });
}

const REFUSED = [
  {
    name: "a slip of the finger",
    args: ["-domian", "d"],
    message: "Unknown flag --domian; did you mean --domain?",
  },
  { name: "a word of its own", args: ["--zzz=1"], message: "Unknown flag --zzz" },
  {
    name: "a name that every object has",
    args: ["-toString"],
    message: "Unknown flag --toString",
  },
  {
    name: "a value that is missing",
    args: ["-tls", "-domain"],
    message: "Flag --domain requires a value",
  },
  {
    name: "a boolean of another word",
    args: ["-tls=yes"],
    message: 'Invalid --tls "yes": expected true or false',
  },
  { name: "a flag without a name", args: ["-=d"], message: 'Cannot read flag "-=d": no name' },
  { name: "three dashes", args: ["---domain"], message: 'Cannot read flag "---domain": no name' },
];

for (const { name, args, message } of REFUSED) {
  Deno.test(`parseFlags refuses ${name}`, () => {
    const error = assertThrows(() => parseFlags(args, SPEC));
    assertEquals([error instanceof FlagError, error.message], [true, message]);
  });
}

Deno.test("flags: a descriptor keeps the order of its keys, each of which it has once", () => {
  assertEquals(readDescriptors(["tier=gold,7=a=b"]).map(({ text }) => text), ['{"tier":"gold","7":"a=b"}']);
  const error = assertThrows(() => readDescriptors(["a=1,a=2"]));
  assertEquals([error instanceof FlagError, error.message.includes("expected each key once")], [true, true]);
});

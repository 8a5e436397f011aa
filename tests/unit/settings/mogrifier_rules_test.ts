import { assertEquals } from "#assert";
import { type Environment, readSettings } from "../../../src/settings/read_settings.ts";
import { mogrifierProblems } from "../../../src/settings/mogrifier_rules.ts";

const FAMILY = "TAGGED_PUSH_STATS_MOGRIFIER";
const WHOLE: Environment = { [`${FAMILY}_HITS_PATTERN`]: "^a$", [`${FAMILY}_HITS_NAME`]: "b" };

const CASES: readonly { name: string; env: Environment; problems: readonly string[] }[] = [
  { name: "no mogrifiers", env: {}, problems: [] },
  { name: "a whole one", env: { TAGGED_PUSH_STATS_MOGRIFIERS: "HITS", ...WHOLE }, problems: [] },
  {
    name: "small letters in the list",
    env: { TAGGED_PUSH_STATS_MOGRIFIERS: "hits", ...WHOLE },
    problems: [],
  },
  { name: "one that is in no list", env: { [`${FAMILY}_HITS_NAME`]: "b" }, problems: [] },
  {
    name: "an unknown one, in both lists",
    env: { TAGGED_PUSH_STATS_MOGRIFIERS: "HIT", USE_TAGGED_PUSH_STATS_MOGRIFIERS: "HIT,other", ...WHOLE },
    problems: [
      `Invalid TAGGED_PUSH_STATS_MOGRIFIERS "HIT": no mogrifier has this name; expected ${FAMILY}_HIT_PATTERN and ` +
      `${FAMILY}_HIT_NAME`,
      `Invalid USE_TAGGED_PUSH_STATS_MOGRIFIERS "other": no mogrifier has this name; expected ` +
      `${FAMILY}_OTHER_PATTERN and ${FAMILY}_OTHER_NAME`,
    ],
  },
  {
    name: "no pattern",
    env: { TAGGED_PUSH_STATS_MOGRIFIERS: "A", [`${FAMILY}_A_NAME`]: "b" },
    problems: [
      `Invalid TAGGED_PUSH_STATS_MOGRIFIERS "A": ${FAMILY}_A_PATTERN is not set; expected a regular expression`,
    ],
  },
  {
    name: "no name, and a tag without value",
    env: {
      TAGGED_PUSH_STATS_MOGRIFIERS: "A",
      [`${FAMILY}_A_PATTERN`]: "b",
      [`${FAMILY}_A_TAGS`]: "k:v,empty:",
    },
    problems: [
      `Invalid TAGGED_PUSH_STATS_MOGRIFIERS "A": ${FAMILY}_A_NAME is not set; expected the name that statistics get`,
      `Invalid ${FAMILY}_A_TAGS "empty:": its value is empty; expected key:value`,
    ],
  },
];

for (const { name, env, problems } of CASES) {
  Deno.test(`tagged problems: ${name}`, () => {
    const problemsWith = (isOn: boolean) => {
      const { settings } = readSettings({ BACKEND_TYPE: "memory", ...env });
      return mogrifierProblems({ ...settings, USE_TAGGED_PUSH_STATS: isOn });
    };
    assertEquals([problemsWith(true), problemsWith(false)], [[...problems], []]);
  });
}

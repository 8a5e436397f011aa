import { assertEquals } from "#assert";
import { matchBucket } from "../../../../src/ratelimit/rules/match_bucket.ts";
import { parseDescriptorText } from "../../../../src/ratelimit/request.ts";
import { rulesOf } from "../../../harness/service_fixture.ts";

const limit = (requests: number) => `rate_limit: {unit: second, requests_per_unit: ${requests}}`;
const RULES = rulesOf({
  "r.yaml": `domain: d
descriptors:
- {key: one, ${limit(1)}}
- key: user
  descriptors:
  - {key: path, value: /a, ${limit(2)}}
  - {key: path, value: "/b*", ${limit(3)}}
  - {key: path, ${limit(4)}}
  - key: method
    descriptors:
    - {key: path, value: "/deep", ${limit(5)}}
- key: user
  value: admin
  descriptors:
  - {key: path, value: /a, ${limit(6)}}
- {key: free, value: yes}
- {key: free, ${limit(7)}}
- key: first
  descriptors:
  - {key: second, ${limit(8)}}
- key: second
  descriptors:
  - {key: first, ${limit(9)}}
- key: second
  value: exact
  descriptors:
  - {key: first, ${limit(10)}}
- key: team
  ${limit(11)}
  descriptors:
  - {key: version, value: "v1*", ${limit(12)}}
  - {key: version, value: {regex: "^v[0-9]+$"}, ${limit(13)}}
  - {key: version, value: {in: [beta, v10]}, ${limit(14)}}
  - {key: version, fallback: parent, descriptors: [{key: host, fallback: parent}]}
`,
});

/** A bucket, the limit of its rule, and the pairs in the order of the rule. */
const CASES: readonly (readonly [string, number?, string?])[] = [
  ["one=x", 1, "one=x"],
  ["none=x"],
  ["one=x,more=y"],
  ["user=u"],
  ["user=u,path=/a", 2, "user=u,path=/a"],
  ["path=/a,user=u", 2, "user=u,path=/a"],
  ["path=/bcd,user=u", 3, "user=u,path=/bcd"],
  ["path=/c,user=u", 4, "user=u,path=/c"],
  ["path=/deep,method=GET,user=u", 5, "user=u,method=GET,path=/deep"],
  ["path=/a,method=GET,user=u"],
  ["path=/a,user=admin", 6, "user=admin,path=/a"],
  // The more specific branch ends early.
  ["path=/b1,user=admin", 3, "user=admin,path=/b1"],
  // An exact rule without a limit takes precedence.
  ["free=yes"],
  ["free=no", 7, "free=no"],
  // The order of the file, then an exact value.
  ["second=x,first=y", 8, "first=y,second=x"],
  ["first=y,second=exact", 10, "second=exact,first=y"],
  ["version=beta,team=a", 14, "team=a,version=beta"],
  ["version=v10,team=a", 14, "team=a,version=v10"],
  ["version=v11,team=a", 12, "team=a,version=v11"],
  ["version=v2,team=a", 13, "team=a,version=v2"],
  ["version=v2x,team=a", 11, "team=a,version=v2x"],
  ["host=h,version=v2x,team=a", 11, "team=a,version=v2x,host=h"],
  ["host=h,version=v2,team=a", 11, "team=a,version=v2,host=h"],
  [Array.from({ length: 9 }, (_, index) => `k${index}=v`).join(",")],
];

for (const [bucket, requests, path] of CASES) {
  Deno.test(`match bucket: ${bucket}`, () => {
    const pairs = parseDescriptorText(bucket);
    const table = RULES.domains.get("d");
    const match = typeof pairs === "string" || table === undefined ? undefined : matchBucket(table, pairs);
    const found = match?.entries.map(({ key, value }) => `${key}=${value}`).join(",");
    assertEquals([match?.limit.requestsPerUnit, found], [requests, path]);
  });
}

Deno.test("match bucket: a tree with many branches that end early is left in time", () => {
  const level = (depth: number, prefix: string): string =>
    depth === 6
      ? ""
      : Array.from({ length: 6 }, (_, key) =>
        prefix.includes(`${key}`)
          ? ""
          : `${"  ".repeat(depth)}- key: k${key}\n${"  ".repeat(depth)}  descriptors:\n` +
            (level(depth + 1, `${prefix}${key}`) || `${"  ".repeat(depth + 1)}- {key: end, ${limit(1)}}\n`))
        .join("");
  const table = rulesOf({ "r.yaml": `domain: d\ndescriptors:\n${level(0, "")}` }).domains.get("d");
  const pairs = Array.from(
    { length: 7 },
    (_, index) => ({ key: index === 6 ? "no" : `k${index}`, value: "v" }),
  );
  assertEquals(table === undefined ? undefined : matchBucket(table, pairs), undefined);
});

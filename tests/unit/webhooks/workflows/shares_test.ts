import { assertEquals } from "#assert";
import { WorkflowShares } from "../../../../src/webhooks/workflows/shares.ts";
import type { DueQueue } from "../../../../src/webhooks/store/operations/execution_claims.ts";

const BYTES = 1_000;

function queue(name: string, stage: DueQueue["stage"] = "new", dueAt = 0, expiredClaims = 0): DueQueue {
  const [workflow = "", triggerId = ""] = name.split("/");
  return { workflow, triggerId, stage, dueAt, expiredClaims };
}

/** The claims until nothing more may be claimed, a look at a time, where there is always more. */
function filled(shares: WorkflowShares, due: readonly DueQueue[], bytes = 0): Record<string, number> {
  const counts: Record<string, number> = {};
  for (;;) {
    const claims = shares.claims(due, 50);
    if (claims.length === 0) return counts;
    for (const { max, maxBytes: _, ...queue } of claims) {
      const { workflow, triggerId, stage } = queue;
      const name = `${workflow}/${triggerId}${stage === "new" ? "" : ` ${stage}`}`;
      counts[name] = (counts[name] ?? 0) + max;
      for (let run = 0; run < max; run++) shares.add(queue, { runs: 1, bytes });
    }
  }
}

function sharesOf(runs: number): WorkflowShares {
  return new WorkflowShares({ runs, bytes: BYTES });
}

Deno.test("workflow shares: what one holds leaves something to the others, however few places there are", () => {
  const alone = [1, 2, 3, 5, 10, 200].map((runs) => filled(sharesOf(runs), [queue("a/t")])["a/t"]);
  assertEquals(alone, [1, 1, 2, 4, 8, 160]);
});

Deno.test("workflow shares: those who come later get a place, though all before them hang", () => {
  const shares = sharesOf(200);
  const held: (number | undefined)[] = [];
  for (let index = 0; index < 5; index++) held.push(filled(shares, [queue(`w${index}/t`)])[`w${index}/t`]);
  assertEquals(held, [160, 32, 6, 1, 1]);
});

Deno.test("workflow shares: a trigger leaves places to others of its workflow, and both to other workflows", () => {
  const shares = sharesOf(200);
  const names = ["a/t1", "a/t2", "b/t1"];
  assertEquals(names.map((name) => filled(shares, [queue(name)])[name]), [160, 20, 16]);
});

Deno.test("workflow shares: places are divided evenly between workflows, triggers and stages that ask together", () => {
  assertEquals(
    filled(sharesOf(41), [queue("a/t1"), queue("a/t2"), queue("b/t"), queue("b/t", "begun")]),
    { "a/t1": 10, "a/t2": 10, "b/t": 9, "b/t begun": 9 },
  );
});

Deno.test("workflow shares: the longest due comes first among equals, voided executions after all others", () => {
  const due = [
    queue("d/t", "voided", 0, 4),
    queue("a/t", "voided", 1, 3),
    queue("b/t", "new", 3),
    queue("c/t", "begun", 2),
  ];
  const first = (count: number) =>
    sharesOf(200).claims(due, count).map(({ workflow, max }) => `${workflow} ${max}`);
  assertEquals([first(1), first(2)], [["c 1"], ["c 1", "b 1"]]);
  assertEquals(filled(sharesOf(1), due), { "c/t begun": 1 });
  assertEquals(filled(sharesOf(1), due.slice(0, 2)), { "a/t voided": 1 });
});

Deno.test("workflow shares: bytes are divided like places, and come back", () => {
  const shares = sharesOf(200);
  const claim = (name: string) => shares.claims([queue(name)], 1)[0]?.maxBytes;
  assertEquals(claim("a/t"), 800);
  shares.add(queue("a/t"), { runs: 1, bytes: 800 });
  assertEquals([claim("a/t"), claim("a/u"), claim("b/t")], [undefined, 100, 160]);
  shares.add(queue("b/t"), { runs: 1, bytes: 300 });
  assertEquals([claim("c/t"), shares.free], [undefined, { runs: 198, bytes: -100 }]);
  shares.add(queue("a/t"), { runs: -1, bytes: -800 });
  shares.add(queue("b/t"), { runs: -1, bytes: -300 });
  assertEquals([claim("a/t"), shares.free], [800, { runs: 200, bytes: 1_000 }]);
});

Deno.test("workflow shares: of many queues each is read a few times, however much is claimed", () => {
  let reads = 0;
  const due = Array.from({ length: 1_000 }, (_, index) => ({
    ...queue(`w/t${index}`),
    get workflow() {
      reads++;
      return "w";
    },
  }));
  assertEquals(sharesOf(200).claims(due, 50).length, 50);
  assertEquals(reads <= 3 * due.length, true, `${reads} reads`);
});

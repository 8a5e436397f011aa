import { assertEquals, assertRejects } from "#assert";
import { type Lease, Leases } from "../../../src/threads/leases.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";

/** Leases on a store that can be made to fail, and to have given claims to another process. */
class Bed {
  readonly clock = new FakeClock(0);
  readonly calls: string[] = [];
  readonly leaseOf = new Map<string, Lease>();
  readonly ended: string[] = [];
  readonly others: string[] = [];
  isFailing = false;
  lost = 0;
  errors = 0;
  ids = 0;
  readonly leases = new Leases<string>({
    clock: this.clock,
    newId: () => `claim ${++this.ids}`,
    lengthMs: () => 30_000,
    renewMs: 10_000,
    renew: (claimIds, leaseUntil) => {
      this.#call(`renew ${claimIds.join(", ")} to ${leaseUntil}`);
      return Promise.resolve(claimIds.filter((id) => !this.others.includes(id)));
    },
    release: (claimIds, now) => {
      this.#call(`release ${claimIds.join(", ")} at ${now}`);
      return Promise.resolve();
    },
    onError: () => this.errors++,
    onLost: () => this.lost++,
    onEnd: (work) => void this.ended.push(work),
  });

  /** Starts work that ends with its signal, or when the answer is called. */
  run(claimId: string): (isUnused: boolean) => void {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.leases.run(claimId, `work of ${claimId}`, this.clock.now() + 30_000, (lease) => {
      this.leaseOf.set(claimId, lease);
      lease.signal.addEventListener("abort", () => resolve(false));
      return promise;
    });
    return resolve;
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  #call(text: string): void {
    this.calls.push(text);
    if (this.isFailing) throw new Error("the store is unavailable");
  }
}

Deno.test("leases: running work is renewed at intervals, each second after a failure", async () => {
  const bed = new Bed();
  bed.leases.start();
  bed.run("a");
  bed.run("b");
  await bed.advance(10_000);
  bed.isFailing = true;
  for (let second = 0; second < 12; second++) await bed.advance(1_000);
  bed.isFailing = false;
  for (let second = 0; second < 12; second++) await bed.advance(1_000);
  const moments = [10, 20, 21, 22, 23, 33];
  assertEquals(bed.calls, moments.map((second) => `renew a, b to ${second * 1_000 + 30_000}`));
  assertEquals([bed.errors, bed.lost, bed.leaseOf.get("a")?.isHeld()], [3, 0, true]);
  await bed.leases.stop(0);
  assertEquals([bed.calls.at(-1), bed.clock.waiting], ["release a, b at 34000", 0]);
});

Deno.test("leases: one that another process has is aborted, and never released", async () => {
  const bed = new Bed();
  bed.run("a");
  bed.run("b");
  bed.others.push("a");
  assertEquals(await bed.leases.renew(), true);
  assertEquals([bed.lost, bed.leaseOf.get("a")?.isHeld(), bed.leaseOf.get("b")?.isHeld()], [1, false, true]);
  await until("the end of the work", () => bed.ended.length === 1);
  assertEquals([bed.leases.size, [...bed.leases.work()]], [1, ["work of b"]]);
  await bed.leases.stop(0);
  assertEquals(bed.calls.at(-1), "release b at 0");
});

Deno.test("leases: a lease is not held after its end, when the process was suspended or the clock was set", () => {
  const bed = new Bed();
  bed.run("a");
  bed.clock.aheadMs = 30_000;
  assertEquals(bed.leaseOf.get("a")?.isHeld(), true);
  bed.clock.aheadMs = 30_001;
  assertEquals(bed.leaseOf.get("a")?.isHeld(), false);
});

Deno.test("leases: claims without an answer, and those that were not used, are released until the store answers", async () => {
  const bed = new Bed();
  await assertRejects(() =>
    bed.leases.claim(({ now, leaseUntil, newClaimId }) => {
      newClaimId();
      newClaimId();
      return Promise.reject(new Error(`claimed at ${now} until ${leaseUntil}, no answer`));
    })
  );
  bed.run("a")(true);
  await until("the end of the work", () => bed.ended.length === 1);
  bed.isFailing = true;
  await assertRejects(() => bed.leases.releaseUnused());
  bed.isFailing = false;
  assertEquals([await bed.leases.releaseUnused(), await bed.leases.releaseUnused()], [true, false]);
  const release = "release claim 1, claim 2, a at 0";
  assertEquals(bed.calls, [release, release]);
});

Deno.test("leases: stopped, work may end within the grace period; the rest is aborted and released", async () => {
  const bed = new Bed();
  const end = bed.run("a");
  bed.run("b");
  const stopped = bed.leases.stop(5_000);
  end(false);
  await bed.advance(4_999);
  assertEquals([bed.ended, bed.leaseOf.get("b")?.signal.aborted], [["work of a"], false]);
  await bed.advance(1);
  await stopped;
  assertEquals([bed.ended, bed.calls], [["work of a", "work of b"], ["release b at 5000"]]);
});

Deno.test("leases: work that ignores its signal does not keep the process from stopping", async () => {
  const bed = new Bed();
  bed.leases.run("a", "stuck", Infinity, () => new Promise(() => {}));
  const stopped = bed.leases.stop(0);
  await bed.advance(2_000);
  await stopped;
  assertEquals([bed.calls, bed.clock.waiting], [["release a at 2000"], 0]);
});

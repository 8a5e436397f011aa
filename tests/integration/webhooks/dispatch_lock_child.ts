import { DispatchLock } from "../../../src/webhooks/store/sqlite/dispatch_lock.ts";

/** Takes the lock of a store and keeps it until it is killed. */
const lock = DispatchLock.take(Deno.args[0] ?? "");
console.log(lock === undefined ? "refused" : "taken");
setInterval(() => {}, 60_000);

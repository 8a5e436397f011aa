import { DatabaseSync } from "node:sqlite";

/** Locks a database against writers, for some milliseconds or until it is killed. */
const [path = "", forMs = "600000"] = Deno.args;
const database = new DatabaseSync(path);
database.exec("BEGIN IMMEDIATE");
console.log("locked");
await new Promise((resolve) => setTimeout(resolve, Number(forMs)));
database.exec("COMMIT");
database.close();
console.log("released");

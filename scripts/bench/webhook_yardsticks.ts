import { Agent, request } from "node:http";
import { DatabaseSync } from "node:sqlite";

/** Commits a second of bare `node:sqlite`, one row each, durable as the store's are. */
export function bareCommits(folder: string, seconds: number): number {
  const database = new DatabaseSync(`${folder}/bare.db`);
  try {
    database.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE row (id TEXT PRIMARY KEY, body TEXT)",
    );
    const insert = database.prepare("INSERT INTO row VALUES (?, ?)");
    const body = "x".repeat(200);
    const begin = performance.now();
    let commits = 0;
    while (performance.now() - begin < seconds * 1_000) {
      database.exec("BEGIN IMMEDIATE");
      insert.run(crypto.randomUUID(), body);
      database.exec("COMMIT");
      commits++;
    }
    return commits / (performance.now() - begin) * 1_000;
  } finally {
    database.close();
  }
}

/** The requests of a bare client. */
interface BareLoad {
  readonly urls: readonly string[];
  readonly requests: number;
  readonly parallel: number;
  readonly body: string;
}

/** Requests a second of a bare client on connections that are kept, so many at the same time. */
export async function barePosts({ urls, requests, parallel, body }: BareLoad): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: parallel });
  let left = requests;
  const work = async () => {
    while (left > 0) {
      const url = urls[left-- % urls.length];
      if (url !== undefined) await post(url, body, agent);
    }
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: parallel }, work));
  const perSecond = requests / (performance.now() - begin) * 1_000;
  agent.destroy();
  return perSecond;
}

function post(url: string, body: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": `${body.length}` };
    const sent = request(url, { method: "POST", headers, agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`Cannot post: HTTP ${response.statusCode}`));
      response.on("error", reject).on("end", resolve).resume();
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

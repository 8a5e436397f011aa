import { until } from "../../tests/harness/until.ts";

const TOKEN = "the-token-of-the-administration-of-the-bench";

/** Settings of a webhook store in this folder, whose deliveries may reach this machine. */
export function storeSettings(folder: string): Readonly<Record<string, string>> {
  return {
    ADMIN_TOKEN: TOKEN,
    WEBHOOK_STORE: `${folder}/weir.db`,
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  };
}

/** Starts an endpoint that acknowledges all it receives; answers its URL. */
export function startEventReceiver(owned: AsyncDisposableStack): string {
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, async (request) => {
    await request.body?.cancel();
    return new Response();
  });
  owned.defer(() => server.shutdown());
  return `http://127.0.0.1:${server.addr.port}/`;
}

/** Adds an endpoint for the events of limits, once the store is open. */
export async function subscribeToLimits(url: string, endpoint: string): Promise<void> {
  await until("the endpoint", async () => {
    const response = await fetch(`${url}/api/v1/endpoints`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ url: endpoint, events: ["ratelimit.*"] }),
    });
    await response.body?.cancel();
    return response.status === 201;
  });
}

import { assertEquals } from "#assert";
import { manifestSecret, withSecretFiles } from "../harness/deploy_files.ts";
import { manifestObjects, renderedManifest } from "../harness/deploy_tools.ts";
import { sharedPostgres } from "../harness/shared_servers.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { WebhookFolder } from "../harness/webhook_weir.ts";
import { startWeir } from "../harness/weir_process.ts";

const server = await sharedPostgres();
/** The cache and the places of a test, in place of those of a pod. */
const OWN = { BACKEND_TYPE: "memory", LOG_FORMAT: "text", SHUTDOWN_DELAY: "0s" };

Deno.test({
  ...needs(
    ["kustomize", "postgres"],
    "kubernetes/webhooks: Weir runs its workflow with PostgreSQL, and all secrets are files",
  ),
  async fn() {
    const objects = manifestObjects(await renderedManifest("webhooks"));
    await using database = await server.database();
    const secrets: Record<string, string> = {
      ...await manifestSecret("webhooks"),
      WEBHOOK_STORE: database.url(),
    };
    const settings = strings(objects.get("ConfigMap weir-settings")?.data ?? {});
    await using files = await withSecretFiles(secrets, { place: "/etc/weir/secrets", settings });
    await using folder = await WebhookFolder.make(
      strings(objects.get("ConfigMap weir-workflows")?.data ?? {}),
    );
    await using weir = await startWeir({
      env: { ...files.settings, ...OWN, WORKFLOW_DIRECTORY: folder.workflows },
    });
    const call = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      return await fetch(`http://${weir.httpAddress}/api/v1/workflows`, { headers });
    };
    const { items, problems } = await until("the store to open", async () => {
      const response = await call(secrets.ADMIN_TOKEN ?? "");
      return response.ok ? await response.json() : void await response.body?.cancel();
    });
    assertEquals([items.map(({ id }: { id: string }) => id), problems], [["order-intake"], []]);
    const refused = await call("wrong");
    await refused.body?.cancel();
    assertEquals(refused.status, 401);
    assertEquals(await weir.stop(), 0);
  },
});

function strings(data: object): Record<string, string> {
  return Object.fromEntries(Object.entries(data).map(([name, text]) => [name, String(text)]));
}

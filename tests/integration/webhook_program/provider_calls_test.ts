/** Calls as the documentation of providers shows them, to a Weir that was set up by its commands. */
import { assertEquals } from "#assert";
import { createHmac } from "node:crypto";
import CALLS from "../../testdata/provider_calls.json" with { type: "json" };
import { ran } from "../../harness/administration_fixture.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

/** The calls of a provider, between commands. */
interface ProviderCalls {
  readonly provider: string;
  /** By the names of their files. */
  readonly secrets: Readonly<Record<string, string | undefined>>;
  /** The signed text, with `{time}` and `{body}`. */
  readonly signed: string;
  readonly steps: readonly Step[];
}

interface Step {
  /** A command; `ID` is the trigger, and `OLDEST` its oldest secret. */
  readonly run?: string;
  /** The name of a call. */
  readonly call?: string;
  readonly method?: string;
  readonly query?: string;
  /** With `{time}`, `{sign NAME}` and `{secret NAME}`. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly status?: number;
  /** The whole body. */
  readonly answer?: string;
  /** The name of the execution that is started, or was started before. */
  readonly execution?: string;
  readonly event?: string;
}

for (const one of CALLS as readonly ProviderCalls[]) {
  Deno.test(`calls as ${one.provider} documents them have their effect`, async () => {
    await using folder = await WebhookFolder.make();
    await using weir = await folder.start();
    for (const [name, secret] of Object.entries(one.secrets)) {
      await Deno.writeTextFile(`${folder.path}/${name}`, `${secret}\n`);
    }
    const executions = new Map<string, string>();
    for (const step of one.steps) {
      if (step.run !== undefined) await run(step.run, folder, weir.httpAddress);
      else await call(one, step, { address: weir.httpAddress, executions });
    }
    const { items } = (await api(weir.httpAddress, "/executions")).body;
    assertEquals(new Set(items.map(({ id }) => id)), new Set(executions.values()));
  });
}

async function run(line: string, { path }: WebhookFolder, address: string): Promise<void> {
  const [trigger] = (await api(address, "/triggers")).body.items;
  const secrets = trigger?.["secrets"] as readonly { readonly id: string }[] | undefined;
  const command = line.replaceAll("FOLDER", path)
    .replace("ID", trigger?.id ?? "")
    .replace("OLDEST", secrets?.at(-1)?.id ?? "");
  const environment = { WEIR_URL: `http://${address}`, ADMIN_TOKEN };
  const { code, stderr } = await ran(command, { environment });
  assertEquals([code, stderr.replace(/^Save .*\n/, "")], [0, ""], line);
}

async function call(
  { provider, secrets, signed }: ProviderCalls,
  { method = "POST", query = "", headers = {}, body, ...expected }: Step,
  { address, executions }: { readonly address: string; readonly executions: Map<string, string> },
): Promise<void> {
  const time = `${Math.floor(Date.now() / 1_000)}`;
  const text = signed.replace("{time}", time).replace("{body}", () => body ?? "");
  const filled = (template: string) =>
    template.replace("{time}", time)
      .replaceAll(/\{secret (\w+)\}/g, (_, name) => secrets[name] ?? "")
      .replaceAll(
        /\{sign (\w+)\}/g,
        (_, name) => createHmac("sha256", secrets[name] ?? "").update(text).digest("hex"),
      );
  const sent = Object.entries(headers).map(([name, value = ""]) => [name, filled(value)] as [string, string]);
  const response = await fetch(`http://${address}/api/v1/workflows/triggers/${provider}${filled(query)}`, {
    method,
    headers: sent,
    body: body ?? null,
  });
  const answer = await response.text();
  const { call: what, status, execution, event } = expected;
  assertEquals(response.status, status, `${what}: ${answer}`);
  if (expected.answer !== undefined) assertEquals(answer, expected.answer, what);
  if (execution === undefined) return;
  const { executionId } = JSON.parse(answer);
  const isKnown = executions.has(execution);
  assertEquals(response.headers.get("idempotency-replayed"), isKnown ? "true" : null, what);
  assertEquals(executionId, executions.get(execution) ?? executionId, what);
  executions.set(execution, executionId);
  if (event === undefined) return;
  assertEquals((await api(address, `/executions/${executionId}`)).body["event"], event);
}

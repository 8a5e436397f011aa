import { assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { freePort } from "../../harness/free_port.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";
import {
  compare,
  type Env,
  NOON,
  type SettingCases,
  SHOP,
  shopRequest,
  withFolder,
} from "./settings_case.ts";
import { watched } from "./settings_kv_bed.ts";

/** Tests of the settings of where rules come from. */
export const RULES_CASES: SettingCases = {
  RUNTIME_ROOT: {
    sees: "the rules of another folder",
    run: () =>
      withFolder({ "config/other.yaml": ruleOf("other") }, (folder) =>
        compare({ RUNTIME_ROOT: folder }, {
          rules: { "own.yaml": ruleOf("own") },
          look: domains,
          unset: ["own"],
          set: ["other"],
        })),
  },
  RUNTIME_SUBDIRECTORY: {
    sees: "the rules of a folder below the root",
    run: () => comparesFolders({ RUNTIME_SUBDIRECTORY: "below" }, "below/config/rules.yaml"),
  },
  RUNTIME_APPDIRECTORY: {
    sees: "the rules of a folder of another name",
    run: () => comparesFolders({ RUNTIME_APPDIRECTORY: "named" }, "named/rules.yaml"),
  },
  RUNTIME_IGNOREDOTFILES: {
    sees: "a rule file with a dot before its name left out",
    run: () =>
      compare({ RUNTIME_IGNOREDOTFILES: "true" }, {
        rules: { ".hidden.yaml": ruleOf("hidden"), "plain.yaml": ruleOf("plain") },
        look: domains,
        unset: ["hidden", "plain"],
        set: ["plain"],
      }),
  },
  RUNTIME_WATCH_ROOT: {
    sees: "a changed file followed at once, or the root replaced",
    run: watchesFilesOrRoot,
  },
  MERGE_DOMAIN_CONFIG: {
    sees: "two files with rules of one domain accepted",
    run: () =>
      compare({ MERGE_DOMAIN_CONFIG: "true" }, {
        env: { FORCE_START_WITHOUT_INITIAL_CONFIG: "true" },
        rules: { "a.yaml": ruleOf("shop", "first"), "b.yaml": ruleOf("shop", "second") },
        look: firstLoad,
        unset: "rejected",
        set: "accepted",
      }),
  },
  FORCE_START_WITHOUT_INITIAL_CONFIG: {
    sees: "ports open that otherwise wait for the first rules",
    run: opensOrWaits,
  },
  HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: {
    sees: "health bad while there is no domain",
    run: () =>
      compare({ HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: "true" }, {
        rules: {},
        look: (service) => service.page("/healthcheck"),
        unset: "OK",
        set: "config: the rate limit configuration has no domain\n",
      }),
  },
};

function ruleOf(domain: string, key = "key", requests = 1): string {
  return `domain: ${domain}
descriptors:
  - key: ${key}
    rate_limit: { unit: day, requests_per_unit: ${requests} }
`;
}

/** The domains in force, as the debug port shows them. */
async function domains(service: ServeFixture): Promise<string[]> {
  const lines = (await service.page("/rlconfig")).trim().split("\n");
  return lines.map((line) => line.split(".")[0] ?? "");
}

/** Another folder below the same root holds the rules once the setting is there. */
async function comparesFolders(changed: Env, path: string): Promise<void> {
  const files = { "config/rules.yaml": ruleOf("usual"), [path]: ruleOf("chosen") };
  await withFolder(
    files,
    (folder) =>
      compare(changed, { env: { RUNTIME_ROOT: folder }, look: domains, unset: ["usual"], set: ["chosen"] }),
  );
}

async function firstLoad(service: ServeFixture): Promise<string> {
  return await until("the first load", async () => {
    const stats = await service.stats();
    if (stats["ratelimit.service.config_load_success"] === 1) return "accepted";
    return stats["ratelimit.service.config_load_error"] === 1 && "rejected";
  });
}

async function watchesFilesOrRoot(): Promise<void> {
  const files = { "old/config/rules.yaml": ruleOf("shop"), "new/config/rules.yaml": ruleOf("swapped") };
  await withFolder(files, async (folder) => {
    const root = join(folder, "current");
    await Deno.symlink("old", root);
    const env = { RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: "false" };
    await using ofFiles = await ServeFixture.start({ env, clock: NOON });
    // Another process, because the runtime tells every watch of one process what any of them sees.
    // Set but empty is unset: the test bed's own value makes way for the default.
    await using ofRoot = await startWeir({ env: { ...env, RUNTIME_WATCH_ROOT: "" } });
    await Deno.writeTextFile(join(root, "config", "rules.yaml"), ruleOf("edited"));
    await until("the edited file", async () => (await domains(ofFiles))[0] === "edited");
    assertMatch(await pageOf(ofRoot, "/rlconfig"), /^shop\./);
    await Deno.symlink("new", join(folder, "next"));
    await Deno.rename(join(folder, "next"), root);
    await until("the replaced root", async () => (await pageOf(ofRoot, "/rlconfig")).startsWith("swapped."));
    // At the start and for the root: the edited file came and went unseen.
    assertMatch(await pageOf(ofRoot, "/stats"), /^ratelimit\.service\.config_load_success: 2$/m);
  });
}

async function pageOf(weir: WeirProcess, path: string): Promise<string> {
  return await (await fetch(`http://${weir.debugAddress}${path}`)).text();
}

async function opensOrWaits(): Promise<void> {
  const rules = { "shop.yaml": "domain: ''\n" };
  {
    const env = { FORCE_START_WITHOUT_INITIAL_CONFIG: "true" };
    await using forced = await ServeFixture.start({ env, rules, clock: NOON });
    assertEquals((await forced.ask(shopRequest("open=a"))).status, 503);
  }
  await withFolder({ "config/shop.yaml": rules["shop.yaml"] }, async (folder) => {
    const port = freePort();
    const env = { RUNTIME_ROOT: folder, DEBUG_PORT: String(port) };
    const waiting = watched(ServeFixture.start({ env, clock: NOON }));
    const stats = async () => await (await fetch(`http://127.0.0.1:${port}/stats`)).text();
    await until("the rejection", async () => (await stats()).includes("config_load_error: 1\n"));
    assertEquals(waiting.isOver(), false);
    await Deno.writeTextFile(join(folder, "config", "shop.yaml"), SHOP["shop.yaml"]);
    await using service = await waiting.call;
    // The rules are loaded by a worker, before or after the debug port opens.
    const told = service.log.flatMap((line) =>
      /Listening for (?:gRPC|HTTP)|waiting for a good one/.exec(line) ?? []
    );
    assertEquals(told, ["waiting for a good one", "Listening for gRPC", "Listening for HTTP"]);
  });
}

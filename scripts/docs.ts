import config from "../deno.json" with { type: "json" };
import { type GeneratedPage, generatePages, pagePart, wholePage } from "./docs/generated_page.ts";
import { algorithmsSvg } from "./docs/algorithms_svg.ts";
import { chartSchema } from "./docs/chart_schema.ts";
import { cliPage } from "./docs/cli_page.ts";
import { houseSvg } from "./docs/house_svg.ts";
import { metricsPart } from "./docs/metrics_part.ts";
import { OPENAPI_PAGES, openApiText } from "./docs/openapi_pages.ts";
import { latestResults, performancePage, speedPart } from "./docs/performance_page.ts";
import { quotaEnvoysResults } from "./bench/quota_envoys.ts";
import { quotasPart } from "./docs/quotas_part.ts";
import { quotasSvg } from "./docs/quotas_svg.ts";
import { RESOURCE_TABLES } from "./docs/resource_tables.ts";
import { scaleResults } from "./bench/scale.ts";
import { scalePage } from "./docs/scale_page.ts";
import { settingsPage } from "./docs/settings_page.ts";

/** Every page, or part of one, that is generated; entries of one page are applied in order. */
export const PAGES: readonly GeneratedPage[] = [
  wholePage("docs/algorithms.svg", algorithmsSvg),
  wholePage("docs/cli.md", cliPage),
  wholePage("docs/house.svg", houseSvg),
  wholePage("docs/performance.md", async () => performancePage(await latestResults())),
  wholePage("docs/quotas.svg", async () => quotasSvg((await quotaEnvoysResults()).run)),
  pagePart("docs/quotas.md", "measured", async () => quotasPart(await quotaEnvoysResults())),
  pagePart("README.md", "speed", async () => speedPart(await latestResults())),
  wholePage("docs/scale.md", async () => scalePage(await latestResults(), await scaleResults())),
  wholePage("docs/settings.md", settingsPage),
  pagePart("docs/observability.md", "metrics", metricsPart),
  { path: "config/deploy/helm/values.schema.json", render: chartSchema },
  ...OPENAPI_PAGES,
  ...RESOURCE_TABLES,
];

/** Writes the generated pages and `docs/openapi.json`; with `--check`, names those that are stale and returns 1. */
async function main(args: readonly string[]): Promise<number> {
  const isCheck = args.includes("--check");
  const root = new URL("../", import.meta.url);
  const stale = await generatePages(PAGES, { root, isCheck });
  if (!isCheck) await Deno.writeTextFile(new URL("docs/openapi.json", root), openApiText(config.version));
  await print(stale.map((path) => isCheck ? `${path} is stale: run scripts/docs.ts\n` : `${path} written\n`));
  return isCheck && stale.length > 0 ? 1 : 0;
}

async function print(lines: readonly string[]): Promise<void> {
  await new Blob([...lines]).stream().pipeTo(Deno.stderr.writable, { preventClose: true });
}

if (import.meta.main) Deno.exit(await main(Deno.args));

/** The documentation site; `scripts/site.ts` writes the pages and the navigation that this reads, and builds it. */
import { defineConfig } from "vitepress";
import navigation from "../pages/navigation.json" with { type: "json" };

// VitePress requires a default export.
export default defineConfig({
  title: "Weir",
  description: "A rate limit service and a webhook service in one program",
  srcDir: "pages",
  outDir: "dist",
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    config(markdown) {
      const render = markdown.renderer.rules.code_inline;
      // Templates of workflows, such as `{{ input.id }}`, are not expressions of Vue.
      markdown.renderer.rules.code_inline = (tokens, index, ...others) => {
        tokens[index]?.attrSet("v-pre", "");
        return render?.(tokens, index, ...others) ?? "";
      };
    },
  },
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    search: { provider: "local" },
    sidebar: navigation.sidebar,
    outline: { level: [2, 3] },
    nav: [
      { text: "Quickstart", link: "/webhooks/quickstart" },
      { text: "Settings", link: "/settings" },
      { text: "HTTP API", link: "/openapi" },
    ],
  },
});

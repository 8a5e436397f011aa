import { executeWithKills } from "../../harness/workflow_kills.ts";

Deno.test("workflow kill: executions of three steps end when a process is killed between a step and its commit", () =>
  executeWithKills({ executions: 40, kills: ["after_step"], mostPasses: 10, seed: 1 }));

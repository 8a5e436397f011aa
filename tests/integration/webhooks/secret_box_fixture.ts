/** Opens a box at the same moment as other processes, and prints which key seals there. */
import { SecretBox } from "../../../src/webhooks/secrets/secret_box.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

if (import.meta.main) {
  const [keyFile = "", gate = ""] = Deno.args;
  const logger = new RecordedLogger();
  console.log("ready");
  while (!await Deno.stat(gate).then(() => true, () => false));
  const box = await SecretBox.open({ keyFile, logger });
  console.log(JSON.stringify([box.keyId, logger.lines.length]));
}

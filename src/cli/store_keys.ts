import type { Logger } from "../base/log.ts";
import { isPostgresAddress } from "../base/postgres_address.ts";
import { WEBHOOK_TABLE } from "../settings/webhook_table.ts";
import { chosenKeyFile, readKeyFile } from "../webhooks/secrets/key_file.ts";
import { SecretBox } from "../webhooks/secrets/secret_box.ts";
import type { CommandOptions, Output } from "./command.ts";
import { FlagError } from "./flags.ts";

/** The keys that a service with these settings uses for a store; nothing where there is none. Creates no key. */
export async function storeKeys(
  store: string,
  { environment, output }: Pick<CommandOptions, "environment" | "output">,
): Promise<SecretBox | undefined> {
  const logger = stderrLogger(output);
  const keys = keysOf(environment["WEBHOOK_ENCRYPTION_KEY"] ?? "");
  const keyFile = await chosenKeyFile({
    named: environment["WEBHOOK_ENCRYPTION_KEY_FILE"] || undefined,
    ofStore: isPostgresAddress(store) ? undefined : `${store}.key`,
    hasKeys: keys.length > 0,
    logger,
  });
  const hasFile = keyFile !== undefined && await readKeyFile(keyFile, SILENT) !== undefined;
  if (keys.length === 0 && !hasFile) return undefined;
  return await SecretBox.open({ keys, keyFile, logger });
}

function keysOf(text: string): readonly Uint8Array[] {
  if (text === "") return [];
  const parsed = WEBHOOK_TABLE.WEBHOOK_ENCRYPTION_KEY.parse(text);
  // The text is a secret, so it is not shown.
  if ("expected" in parsed) {
    throw new FlagError(`Invalid WEBHOOK_ENCRYPTION_KEY (value not shown): expected ${parsed.expected}`);
  }
  return parsed.value.map((key) => Uint8Array.fromBase64(key));
}

const silent = () => {};
const SILENT: Logger = { debug: silent, info: silent, warning: silent, error: silent };

function stderrLogger({ stderr }: Output): Logger {
  const line: Logger["warning"] = (message, { file } = {}) =>
    stderr(file === undefined ? message : `${message}: ${file}`);
  return { ...SILENT, warning: line, error: line };
}

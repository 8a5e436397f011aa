import { assertEquals, assertMatch, assertNotEquals, assertRejects } from "#assert";
import { join } from "node:path";
import type { Sealed } from "../../../../src/webhooks/model/records.ts";
import { SecretBox } from "../../../../src/webhooks/secrets/secret_box.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";

const SECRET = "whsec_ZmFrZSBzZWNyZXQgb2YgYSB0ZXN0";
const KEY_MADE =
  "Encryption key created; back it up, because the signing secrets cannot be decrypted without it";

const key = (value: number) => new Uint8Array(32).fill(value);

/** Runs with the path of a key file in a folder that is empty. */
async function withKeyFile(run: (keyFile: string, logger: RecordedLogger) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  try {
    await run(join(folder, "weir.db.key"), new RecordedLogger());
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function namesBeside(keyFile: string): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(join(keyFile, "..")), ({ name }) => name);
  return names.toSorted();
}

Deno.test("what is sealed is opened again, and is never the same bytes twice", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const box = await SecretBox.open({ keys: [key(1)], keyFile, logger });
    for (const text of [SECRET, "", "ü 😀\n", "x".repeat(100_000)]) {
      const [first, second] = [await box.seal(text), await box.seal(text)];
      assertEquals([await box.unseal(first), await box.unseal(second)], [text, text]);
      assertEquals([first.keyId, second.keyId], [box.keyId, box.keyId]);
      assertNotEquals(first.bytes, second.bytes);
      // Nonce and tag: 12 and 16 bytes.
      assertEquals(first.bytes.length, new TextEncoder().encode(text).length + 28);
    }
    const { bytes } = await box.seal(SECRET);
    assertEquals(new TextDecoder("latin1").decode(bytes).includes("whsec_"), false);
    assertEquals([logger.lines, await namesBeside(keyFile)], [[], []]);
  });
});

Deno.test("a key keeps its identifier, which tells nothing about it", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const ids = async (...keys: Uint8Array[]) => (await SecretBox.open({ keys, keyFile, logger })).keyId;
    // The beginning of the SHA-256 of 32 bytes of value 1.
    assertEquals(await ids(key(1)), "72cd6e8422c407fb");
    assertEquals([await ids(key(1), key(2)), await ids(key(1), key(1))], [
      await ids(key(1)),
      await ids(key(1)),
    ]);
    assertNotEquals(await ids(key(2)), await ids(key(1)));
  });
});

Deno.test("keys are rotated: the first seals, all of them open", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const old = await SecretBox.open({ keys: [key(1)], keyFile, logger });
    const both = await SecretBox.open({ keys: [key(2), key(1)], keyFile, logger });
    const next = await SecretBox.open({ keys: [key(2)], keyFile, logger });
    const before = await old.seal(SECRET);
    assertEquals(await both.unseal(before), SECRET);
    const after = await both.seal(SECRET);
    assertEquals([after.keyId, await next.unseal(after)], [next.keyId, SECRET]);
    for (const [box, sealed] of [[next, before], [old, after]] as const) {
      assertEquals(
        (await assertRejects(() => box.unseal(sealed))).message,
        `Cannot decrypt a secret that was encrypted with the key "${sealed.keyId}": it is not among the keys of ` +
          "WEBHOOK_ENCRYPTION_KEY and of the key file; put it behind the others there",
      );
    }
  });
});

Deno.test("a bit that was changed is found", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const box = await SecretBox.open({ keys: [key(1), key(2)], keyFile, logger });
    const other = await SecretBox.open({ keys: [key(2)], keyFile, logger });
    const sealed = await box.seal("secret");
    const spoilt: Sealed[] = [
      ...Array.from(sealed.bytes, (_, at) => ({ ...sealed, bytes: flipped(sealed.bytes, at) })),
      ...[0, 5, 12, 27, sealed.bytes.length - 1].map((end) => ({
        ...sealed,
        bytes: sealed.bytes.slice(0, end),
      })),
      { ...sealed, bytes: new Uint8Array([...sealed.bytes, 0]) },
      // Under the name of another key.
      { ...sealed, keyId: other.keyId },
    ];
    for (const { keyId, bytes } of spoilt) {
      const error = await assertRejects(() => box.unseal({ keyId, bytes }));
      assertEquals(
        error.message,
        `Cannot decrypt a secret that was encrypted with the key "${keyId}": it was changed since`,
      );
    }
    assertEquals(await box.unseal(sealed), "secret");
  });
});

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

for (const length of [0, 16, 31, 33]) {
  Deno.test(`a key of ${length} bytes is refused`, async () => {
    await withKeyFile(async (keyFile, logger) => {
      const keys = [key(1), new Uint8Array(length).fill(7)];
      const { message } = await assertRejects(() => SecretBox.open({ keys, keyFile, logger }));
      assertEquals(
        message,
        `Cannot use a key of WEBHOOK_ENCRYPTION_KEY: expected 32 bytes, got ${length}`,
      );
    });
  });
}

Deno.test("without keys one is made next to the store, for its owner alone, and used again", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const sealed = await (await SecretBox.open({ keyFile, logger })).seal(SECRET);
    assertEquals(logger.lines, [{ level: "info", message: KEY_MADE, fields: { file: keyFile } }]);
    assertEquals(((await Deno.stat(keyFile)).mode ?? 0) & 0o777, 0o600);
    assertMatch(await Deno.readTextFile(keyFile), /^[A-Za-z0-9+/]{43}=\n$/);
    assertEquals(await namesBeside(keyFile), ["weir.db.key"]);
    const again = await SecretBox.open({ keys: [], keyFile, logger });
    assertEquals([await again.unseal(sealed), logger.lines.length], [SECRET, 1]);
  });
});

Deno.test("what was sealed under the key file opens after a key was set", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const before = await SecretBox.open({ keyFile, logger });
    const sealed = await before.seal(SECRET);
    const box = await SecretBox.open({ keys: [key(1)], keyFile, logger });
    assertEquals(await box.unseal(sealed), SECRET);
    assertNotEquals(box.keyId, before.keyId);
  });
});

Deno.test("a key file that others may read is used, with a warning", async () => {
  await withKeyFile(async (keyFile, logger) => {
    await Deno.writeTextFile(keyFile, key(1).toBase64());
    for (const mode of [0o600, 0o640, 0o604, 0o400]) {
      await Deno.chmod(keyFile, mode);
      assertEquals((await SecretBox.open({ keyFile, logger })).keyId, "72cd6e8422c407fb");
    }
    const line = (mode: string) => ({
      level: "warning" as const,
      message: `The key file is open to others, mode ${mode}, expected 600`,
      fields: { file: keyFile },
    });
    assertEquals(logger.lines, [line("640"), line("604")]);
  });
});

for (
  const text of ["", "\n", "abc", key(1).slice(1).toBase64(), "*".repeat(44), `${key(1).toBase64()}AAAA`]
) {
  Deno.test(`a key file that holds ${JSON.stringify(text)} is refused, and stays as it is`, async () => {
    await withKeyFile(async (keyFile, logger) => {
      await Deno.writeTextFile(keyFile, text, { mode: 0o600 });
      const problem = `Cannot use the key file "${keyFile}": it does not hold base64 of 32 bytes; ` +
        "restore it from a backup";
      assertEquals((await assertRejects(() => SecretBox.open({ keyFile, logger }))).message, problem);
      assertEquals(await Deno.readTextFile(keyFile), text);
      // With keys of the setting it is not needed.
      await SecretBox.open({ keys: [key(1)], keyFile, logger });
      assertEquals(logger.lines, [{ level: "warning", message: problem, fields: { file: keyFile } }]);
    });
  });
}

Deno.test("a key file that cannot be created is an error that names the alternative", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const path = join(keyFile, "..", "missing", "weir.db.key");
    const { message } = await assertRejects(() => SecretBox.open({ keyFile: path, logger }));
    assertEquals(message.startsWith(`Cannot create the key file "${path}": No such file or directory`), true);
    assertEquals(message.endsWith("; set WEBHOOK_ENCRYPTION_KEY instead"), true);
  });
});

Deno.test("boxes that are opened at the same time get the same key, and one line tells of it", async () => {
  await withKeyFile(async (keyFile, logger) => {
    const boxes = await Promise.all(Array.from({ length: 20 }, () => SecretBox.open({ keyFile, logger })));
    assertEquals(new Set(boxes.map(({ keyId }) => keyId)).size, 1);
    assertEquals([logger.lines.length, await namesBeside(keyFile)], [1, ["weir.db.key"]]);
  });
});

Deno.test("a hash depends on the text and on the key that seals, and on nothing else", async () => {
  const logger = new RecordedLogger();
  const hashOf = async (keys: readonly Uint8Array[], text: string) =>
    await (await SecretBox.open({ keys, logger })).hash(text);
  const hash = await hashOf([key(1)], "ann");
  assertMatch(hash, /^[0-9a-f]{64}$/);
  assertEquals(await hashOf([key(1), key(2)], "ann"), hash);
  assertNotEquals(await hashOf([key(2), key(1)], "ann"), hash);
  assertNotEquals(await hashOf([key(1)], "Ann"), hash);
});

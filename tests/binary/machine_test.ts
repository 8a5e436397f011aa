import { assertEquals, assertMatch } from "#assert";
import { needs } from "../harness/tools.ts";
import { eventually, until } from "../harness/until.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { api } from "../harness/webhook_weir.ts";
import { Machine } from "../harness/weir_machine.ts";

Deno.test({
  ...needs(["redis-server"], "the program alone on a machine decides, reloads, delivers and takes commands"),
  async fn() {
    await using machine = await Machine.open();
    await using receiver = await WebhookReceiver.start();
    await using weir = await machine.start(["serve"]);
    await weir.find({ grpc: /Listening for gRPC on '([^']+)'/, http: /Listening for HTTP on '([^']+)'/ });
    const decisions = [];
    for (let call = 0; call < 3; call++) decisions.push(await machine.decide("v"));
    assertEquals(decisions, [[200, 2], [200, 2], [429, 2]]);

    await machine.swapRules("second", 3);
    await eventually(3, async () => (await machine.decide("other"))[1]);
    weir.signal("SIGHUP");
    assertEquals(await machine.decide("another"), [200, 3]);

    await until("the store", async () => (await api(machine.http, "/endpoints")).status === 200);
    await api(machine.http, "/endpoints", { body: { url: receiver.url } });
    const event = { event: "order.paid", data: { total: 3 } };
    assertEquals((await api(machine.http, "/events", { body: event })).status, 202);
    await until("the delivery", () => receiver.receptions.length === 1);
    assertEquals(JSON.parse(receiver.receptions[0]?.body ?? "").data, { total: 3 });
    assertMatch(await (await fetch(`http://${machine.debug}/ui/`)).text(), /<html/);

    const commands: readonly (readonly [words: string, code: number, text: RegExp])[] = [
      ["version", 0, /^weir \d/],
      ["health", 0, /^OK$/],
      [`check ${machine.folder.replaceAll(" ", "?")}/current/config`, 0, /^/],
      ["endpoints list", 0, /http:\/\/127\.0\.0\.1/],
      ["completions bash", 0, /complete/],
      ["nonsense", 2, /Unknown command/],
    ];
    for (const [words, code, text] of commands) {
      const [ended, printed] = await machine.run(
        ...words.split(" ").map((word) => word.replaceAll("?", " ")),
      );
      assertEquals([words, ended], [words, code], printed);
      assertMatch(printed, text);
    }
    assertEquals((await weir.stop()).code, 0, weir.stderrLines.join("\n"));
  },
});

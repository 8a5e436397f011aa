import type { AdministrationCommand } from "./administration_command.ts";

/** `weir deliveries pause` and `resume`, about all deliveries. */
export const PAUSE_COMMANDS: readonly AdministrationCommand[] = [
  {
    ...everyDelivery("pause", "pause all deliveries, on all instances, until they are resumed"),
    notes: "Weir starts no new attempts. Attempts in flight end normally, and Weir still accepts events.",
  },
  everyDelivery("resume", "resume all deliveries"),
];

function everyDelivery(verb: string, doc: string): AdministrationCommand {
  return {
    ...{ words: `deliveries ${verb}`, args: [], doc, flags: {} },
    ...{ method: "POST", path: `/deliveries/${verb}`, shown: { as: "record" } },
  };
}

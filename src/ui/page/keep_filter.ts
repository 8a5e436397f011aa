import type { PageParts } from "./view.ts";

/** Keeps what a list is narrowed by, so that who comes back from one of its records finds it as it was. */
export function keepFilter(
  { filters }: PageParts,
  control: HTMLInputElement | HTMLSelectElement,
  changed: () => void,
): void {
  control.value = filters.get(control.id) ?? "";
  control.addEventListener("change", () => {
    filters.set(control.id, control.value);
    changed();
  });
}

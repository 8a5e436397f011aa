/** Variables of the environment, from which the exporters read; put back at the end of a `using`. */
export class EnvironmentOf implements Disposable {
  readonly #before: readonly (readonly [string, string | undefined])[];

  constructor(variables: Readonly<Record<string, string>>) {
    this.#before = Object.keys(variables).map((name) => [name, Deno.env.get(name)]);
    for (const [name, value] of Object.entries(variables)) Deno.env.set(name, value);
  }

  [Symbol.dispose](): void {
    for (const [name, value] of this.#before) {
      if (value === undefined) Deno.env.delete(name);
      else Deno.env.set(name, value);
    }
  }
}

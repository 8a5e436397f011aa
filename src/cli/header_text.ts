/** A header that is written as `Name: value`; nothing when the text is none. */
export function headerOf(text: string): readonly [name: string, value: string] | undefined {
  const [, name, value] = /^([^:\s]+):\s*(.*\S)\s*$/.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

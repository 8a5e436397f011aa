/** In characters of the texts, of which each counts for some more. Each event needs all filters, so all have to fit. */
const MAX_CACHED = 8_388_608;
const MORE_CHARACTERS = 100;

/** Keeps what was read of a text that is read often, such as the condition of a record. */
export function cachedReading<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  let size = 0;
  return (text) => {
    let value = known.get(text);
    if (value === undefined) {
      value = read(text);
      if (size >= MAX_CACHED) {
        known.clear();
        size = 0;
      }
      known.set(text, value);
      size += text.length + MORE_CHARACTERS;
    }
    return value;
  };
}

// Reads members of untyped JSON objects.

export type Data = Record<string, unknown>;

export function objectOf(value: unknown): Data {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Data) : {};
}

/** A string; undefined if it is none, or empty. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function objectsOf(value: unknown): Data[] {
  return elementsOf(value).filter((element): element is Data => typeof element === "object" && element !== null && !Array.isArray(element));
}

export function stringsOf(value: unknown): string[] {
  return elementsOf(value).filter((element) => typeof element === "string");
}

function elementsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

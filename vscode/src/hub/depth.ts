// Limits how deep third-party JSON is nested. Agents choose the inputs of their tools.

/**
 * The most levels of third-party JSON that are kept. At some thousand levels, JSON.stringify and the messages between VS Code
 * and a page overflow the stack, and indented text grows with the square of the levels.
 */
export const mostLevels = 200;

const note = `… (nested deeper than ${mostLevels} levels)`;

/** Replaces each object and array below mostLevels by a note, in place. The time is linear, whatever the form of the value. Returns the value. */
export function limitLevels<T>(value: T): T {
  const open: Array<{ of: object; level: number }> = [];
  if (typeof value === "object" && value !== null) open.push({ of: value, level: 1 });
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { of, level } = next;
    for (const [name, child] of Object.entries(of) as Array<[string, unknown]>) {
      if (typeof child !== "object" || child === null) continue;
      if (level < mostLevels) open.push({ of: child, level: level + 1 });
      else Object.defineProperty(of, name, { value: note }); // an assignment to __proto__ would change nothing
    }
  }
  return value;
}

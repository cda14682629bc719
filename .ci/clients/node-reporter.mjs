// A reporter for node --test: one JSON line for each test of the top level.
export default async function* results(source) {
  for await (const { type, data } of source) {
    if ((type !== "test:pass" && type !== "test:fail") || data.nesting > 0) continue;
    const skipped = data.skip !== undefined || data.todo !== undefined;
    yield `${JSON.stringify({ file: data.file, name: data.name, passed: type === "test:pass", skipped })}\n`;
  }
}

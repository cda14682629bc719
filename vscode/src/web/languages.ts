// highlight.js in a browser, in place of src/webview/languages.ts: a third of the page's code, loaded when it is needed.
import type * as Languages from "../webview/languages";

let engineOf: typeof Languages.engine | undefined;
let loading: Promise<void> | undefined;

export function engine(): ReturnType<typeof Languages.engine> {
  return engineOf?.();
}

export function ready(): Promise<void> | undefined {
  if (engineOf) return undefined;
  // The bundle of src/webview/languages.ts lies beside that of the page.
  const file = "./languages.js";
  return (loading ??= (import(file) as Promise<typeof Languages>).then((loaded) => (engineOf = loaded.engine), () => (engineOf = () => undefined)).then(() => undefined));
}

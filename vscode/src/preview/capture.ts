// Runs in each page of the preview. It sends the page's console output, errors and location to the panel around it.
import { JSONRPCClient, JSONRPCServer, windowTransport } from "../rpc/index";

/** The longest text that is sent, in characters. */
const most = 8_000;

const transport = windowTransport(window.parent);
const client = new JSONRPCClient(transport);
const server = new JSONRPCServer(transport);
const send = (method: string, params: Record<string, unknown>): void => client.notify(method, params);
const place = (): string => location.pathname + location.search + location.hash;
const cut = (text: string): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return String(value);
  try {
    return (typeof value === "object" ? JSON.stringify(value) : undefined) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function stackOf(value: unknown): string {
  if (!(value instanceof Error) || !value.stack) return "";
  return cut(value.stack.replace(/(https?:\/\/[^\s()]+?):(\d+):(\d+)/g, (_, file: string, line: string, column: string) =>
    `${file}:${line}:${columnOf(file, Number(line), Number(column))}`));
}

// The tag of this script shifts what follows it in its line.
const tag = document.currentScript as HTMLScriptElement;
const [tagLine, tagLength] = [Number(tag.dataset["line"]), tag.outerHTML.length];
const here = location.href.replace(/#.*/, "");
const columnOf = (file: string, line: number, shifted: number): number =>
  file === here && line === tagLine && shifted > tagLength ? shifted - tagLength : shifted;

for (const level of ["log", "debug", "info", "warn", "error"] as const) {
  const write = console[level].bind(console);
  console[level] = (...values: unknown[]) => {
    write(...values);
    send("console", { level, message: cut(values.map(textOf).join(" ")), url: place() });
  };
}

window.addEventListener("error", (event: Event) => {
  if (event instanceof ErrorEvent) {
    send("error", { message: cut(event.message), stack: stackOf(event.error), url: event.filename || place(), line: event.lineno, column: columnOf(event.filename, event.lineno, event.colno) });
    return;
  }
  const { src, href } = event.target as { src?: string; href?: string };
  if (src || href) send("error", { message: cut(`cannot load ${src || href || ""}`), url: place() });
}, true);
window.addEventListener("unhandledrejection", ({ reason }) => {
  send("error", { message: cut(`Unhandled rejection: ${textOf(reason)}`), stack: stackOf(reason), url: place() });
});

const moved = (): void => send("updateNavigationState", { url: place(), title: document.title });
for (const name of ["pushState", "replaceState"] as const) {
  const change = history[name].bind(history);
  history[name] = (...values: Parameters<History["pushState"]>) => {
    change(...values);
    moved();
  };
}
for (const name of ["popstate", "hashchange", "load"]) window.addEventListener(name, moved);

server.onNotify("go", (params) => {
  const { url } = params as { url: string };
  location.replace(url);
  if (url === place()) location.reload();
});

// The page of the preview's panel: an address bar, the project's page in an iframe, and a list of its messages.
import { JSONRPCClient, JSONRPCServer, webviewPageTransport, windowTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { add, counts, levelOf, placeOf, reportOf, Trail, withoutOrigin } from "./entries";
import type { Entry, Level, Said } from "./entries";

declare function acquireVsCodeApi(): WebviewApi & { setState(state: { folder: string }): void };

const api = acquireVsCodeApi();
const { origin = "", folder = "", trail: kept = "{}" } = document.body.dataset;
const { urls, at } = JSON.parse(kept) as Partial<Trail>;
const trail = new Trail(urls, at);
let entries: Entry[] = [];
let shown: Level | "all" = "all";

function element<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Array<Node | string>): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function button(label: string, text: string, action: () => void): HTMLButtonElement {
  const made = element("button", { "aria-label": label, title: label }, text);
  made.addEventListener("click", action);
  return made;
}

const host = webviewPageTransport(api);
const extension = new JSONRPCClient(host);
const fromExtension = new JSONRPCServer(host);

const back = button("Back", "←", () => go(trail.step(-1)));
const forward = button("Forward", "→", () => go(trail.step(1)));
const address = element("input", { type: "text", "aria-label": "Address", spellcheck: "false" });
const form = element("form", {}, back, forward, button("Reload", "↻", reload), address, button("Send to the Agent", "Send to the agent", () => extension.notify("send", { report: reportOf(problems()) })));
// Each preview has an origin of its own, so the frame shares nothing with this page or with another site.
const frame = element("iframe", { sandbox: "allow-scripts allow-same-origin allow-forms allow-modals allow-popups", title: "The project's page" });
const filters = element("div", { class: "filters", role: "toolbar", "aria-label": "What is listed" });
const list = element("ul", { "aria-label": "What the page says" });
document.body.append(form, frame, element("section", {}, filters, list));
// A button submits its form unless its type is "button".
for (const each of form.querySelectorAll("button")) each.type = "button";

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = address.value.trim().replace(/^https?:\/\/[^/]*/, "");
  const url = typed.startsWith("/") ? typed : `/${typed}`;
  trail.arrived(url);
  go(url);
});

// The frame is in the document now, so it has a window.
const inner = windowTransport(frame.contentWindow!, window, origin);
const page = new JSONRPCClient(inner);
const fromPage = new JSONRPCServer(inner);
for (const kind of ["console", "error"] as const) {
  fromPage.onNotify(kind, (params) => {
    const said = withoutOrigin(params as unknown as Said, origin);
    entries = add(entries, { ...said, kind });
    extension.notify(kind, { ...said });
    drawSoon();
  });
}
fromPage.onNotify("updateNavigationState", (params) => {
  trail.arrived((params as { url: string }).url);
  extension.notify("updateNavigationState", params);
  keep();
});
fromExtension.onNotify("navigate", (params) => {
  const { url } = params as { url: string };
  trail.arrived(url);
  go(url);
});
fromExtension.onNotify("refresh", reload);

function go(url: string | undefined): void {
  if (url === undefined) return;
  frame.src = origin + url;
  keep();
}

/** reload asks the page to reload at its place. If no page has loaded yet, it loads the frame. */
function reload(): void {
  entries = [];
  drawSoon();
  page.notify("go", { url: trail.url });
  if (!loaded) go(trail.url);
}
let loaded = false;
frame.addEventListener("load", () => (loaded = true));

function keep(): void {
  address.value = trail.url;
  back.disabled = trail.at === 0;
  forward.disabled = trail.at === trail.urls.length - 1;
  extension.notify("keep", { urls: trail.urls, at: trail.at });
}

function problems(): Entry[] {
  const wrong = entries.filter((entry) => levelOf(entry) !== "other");
  return wrong.length > 0 ? wrong : entries;
}

let drawing = false;
function drawSoon(): void {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

function draw(): void {
  const numbers = counts(entries);
  const labels: Array<[Level | "all", string]> = [["all", "All"], ["error", `Errors ${numbers.error}`], ["warn", `Warnings ${numbers.warn}`], ["other", `Other ${numbers.other}`]];
  filters.replaceChildren(...labels.map(([level, label]) => {
    const made = button(label, label, () => {
      shown = level;
      draw();
    });
    made.setAttribute("aria-pressed", String(shown === level));
    return made;
  }), button("Clear", "Clear", () => {
    entries = [];
    draw();
  }));
  const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  list.replaceChildren(...entries.filter((entry) => shown === "all" || levelOf(entry) === shown).map(row));
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function row(entry: Entry): HTMLLIElement {
  const made = element("li", { class: levelOf(entry) }, element("span", { class: "message" }, entry.message));
  if (entry.count > 1) made.append(element("span", { class: "count" }, `×${entry.count}`));
  const place = placeOf(entry);
  // An element that floats right is in the first line only if it comes first.
  if (entry.line) made.prepend(button(`Open ${place}`, place, () => extension.notify("open", { url: entry.url ?? "/", line: entry.line, column: entry.column })));
  else if (place) made.append(element("span", { class: "place" }, place));
  if (entry.stack) made.append(element("details", {}, element("summary", {}, "Stack"), element("pre", {}, entry.stack)));
  return made;
}

// The extension finds the project by this when VS Code restores the panel.
api.setState({ folder });
draw();
go(trail.url);

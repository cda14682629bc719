// The page that compares the attempts of several agents at one prompt.
import { agentWords, changeWords, gatesWords, isChoosable, isWorking } from "../hub/attempts";
import type { Attempt, Comparison, ComparisonMethods } from "../hub/attempts";
import { JSONRPCClient, JSONRPCServer, webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { button, make, setText } from "./dom";
import { duration, money, turnWords } from "./session";

declare function acquireVsCodeApi(): WebviewApi & { setState(state: unknown): void };

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
api.setState({ place: JSON.parse(root.dataset["place"]!) as unknown });
const transport = webviewPageTransport(api);
const extension = new JSONRPCClient(transport, { timeout: 0 }); // a person answers questions
const fromExtension = new JSONRPCServer(transport);

/** The most files of an attempt that are listed. */
const mostFiles = 100;

const title = make("h1", {});
const notes = make("div", { class: "attempt-notes", is: { role: "status" } });
const failure = make("p", { class: "failure", is: { role: "alert" } });
const list = make("div", { class: "attempts" });
root.classList.add("comparison");
root.replaceChildren(title, notes, failure, list);

/** call asks the extension to do something, and shows its error. */
function call<M extends keyof ComparisonMethods>(method: M, params: ComparisonMethods[M]): void {
  setText(failure, "");
  extension.request(method, params).catch((error: unknown) => setText(failure, (error as Error).message));
}

function draw({ prompt, attempts, notes: lines }: Comparison): void {
  setText(title, prompt);
  title.title = prompt;
  notes.replaceChildren(...lines.map((text) => make("p", { text })));
  // The cards are new each time, so the focus moves to the button in the same place.
  const buttons = (): HTMLButtonElement[] => [...list.querySelectorAll("button")];
  const key = (document.activeElement as HTMLElement | null)?.dataset["key"];
  list.replaceChildren(...attempts.map(card));
  if (key !== undefined) buttons().find(({ dataset }) => dataset["key"] === key)?.focus();
}

function card(attempt: Attempt): HTMLElement {
  const { session_uuid: session, turn, files, more = 0, error, result, usage, state } = attempt;
  const agent = agentWords(attempt);
  const keyed = (key: string, made: HTMLButtonElement): HTMLButtonElement => {
    made.dataset["key"] = `${session} ${key}`;
    return made;
  };
  const { id, text } = turnWords(isWorking(attempt) && attempt.gates?.state === "checking" ? "running" : state);
  const facts = [text, gatesWords(attempt), changeWords(attempt), duration(usage.time_ms), usage.cost_usd > 0 ? money(usage.cost_usd) : ""].filter((part) => part !== "");
  const choose = keyed("choose", button({ class: "primary", label: "Choose…", tip: "Land this attempt, and discard the others", press: () => call("choose", { session }) }));
  choose.disabled = !isChoosable(attempt);
  const changed = make("ul", { class: "attempt-files", is: { "aria-label": "Changed files" } });
  changed.append(...files.slice(0, mostFiles).map(({ path, added, removed, binary }) =>
    make("li", {}, keyed(path, button({ class: "text-button", label: path, tip: `Show the change of ${path}`, press: () => call("openFile", { session, path }) })), " ",
      ...(binary ? [make("span", { class: "note", text: "binary" })] : [make("span", { class: "added", text: `+${added}` }), " ", make("span", { class: "removed", text: `-${removed}` })]))));
  const others = files.length + more - changed.childElementCount;
  return make("section", { class: "attempt", is: { "aria-label": `${agent}, ${turn}`, "data-state": id } },
    make("h2", {}, make("span", { class: "dot", is: { "aria-hidden": "true" } }), make("span", { text: agent }), make("span", { class: "note", text: turn })),
    make("p", { class: "attempt-facts", text: facts.join(" · ") }),
    error ? make("p", { class: "failure", text: error }) : undefined,
    changed,
    others > 0 && make("p", { class: "note", text: `and ${others} more` }),
    result ? make("p", { class: "attempt-result", text: result }) : undefined,
    make("div", { class: "choices" }, choose, keyed("open", button({ class: "secondary", label: "Open Session", press: () => call("openSession", { session }) }))));
}

fromExtension.onNotify("comparison", (params) => draw(params as unknown as Comparison));
call("load", {});

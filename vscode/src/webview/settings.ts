// The settings of an agent and their select boxes: modes of the agent and of Duet, models, and the agent's own options.
import { agentOf, agentWords } from "../hub/attempts";
import type { NewSession, PanelParams } from "../panel/protocol";
import type { Sandbox } from "../protocol";
import { make, setText } from "./dom";
import { objectOf, objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import type { SessionState } from "./session";

/** A value of a setting. */
export interface SettingValue {
  id: string;
  name: string;
  description: string;
  /** The group in the select box. */
  group: string;
}

/** A setting with several values. */
export interface Setting {
  id: string;
  name: string;
  /** The visible label, if it differs from the name. */
  label?: string;
  description: string;
  current: string;
  values: SettingValue[];
  /** The parameters of session.set for a value, or those of panel.choose for a session that has not started. */
  change(value: string): PanelParams<"panel.choose">;
}

/** The settings of a session in its state. */
type Settings = Partial<Pick<SessionState, "agent_session" | "modes" | "requested_mode" | "mode" | "requested_model" | "requested_options">>;

/** Reads the settings of a session: from its state, and from the latest agent_session. */
export function settingsOf(session: Settings, agent: { model?: Data; options?: Data[] }): Setting[] {
  const settings: Setting[] = [];
  const known = objectOf(session.agent_session);
  const modes: SettingValue[] = (session.modes ?? []).map(({ id, name, description, by }) => ({ id, name: name || id, description: description ?? "", group: by === "agent" ? "The agent's" : "Duet's" }));
  const mode = session.mode || session.requested_mode || "";
  if (modes.length > 0) settings.push({ id: "mode", name: "Mode", description: "", current: mode, values: withCurrent(modes, mode), change: (value) => ({ mode: value }) });
  const model = agent.model ?? objectOf(known["model"]);
  const models = objectsOf(model["available"]).map(valueOf);
  const currentModel = session.requested_model || (stringOf(model["current"]) ?? "");
  if (models.length > 0) settings.push({ id: "model", name: "Model", description: "", current: currentModel, values: withCurrent(models, currentModel), change: (value) => ({ model: value }) });
  for (const option of agent.options ?? objectsOf(known["options"])) {
    const id = stringOf(option["id"]);
    const values = objectsOf(option["values"]).map(valueOf);
    // The options include the mode and the model.
    if (id === undefined || values.length === 0 || /^(?:mode|model)$/.test(stringOf(option["category"]) ?? "")) continue;
    const current = session.requested_options?.[id] ?? stringOf(option["current"]) ?? "";
    const name = stringOf(option["name"]) ?? id;
    settings.push({ id: `option-${id}`, name, description: stringOf(option["description"]) ?? "", current, values: withCurrent(values, current), change: (value) => ({ options: { [id]: value } }) });
  }
  return settings;
}

/**
 * The settings of a session that has not started. What its agent reported last was about another session, so values that
 * the user has not chosen are the agent's defaults.
 */
export function newSettingsOf({ folders, agents, worktrees, oneAgent, sends, description, chosen }: NewSession): Setting[] {
  const several = chosen.agents?.map(agentOf).map(agentWords).join(" + ");
  const setting = (id: "folder" | "agent" | "worktree" | "sandbox", name: string, values: Array<Partial<SettingValue> & { id: string; name: string }>): Setting[] =>
    values.length === 0 ? [] : [{ id, name, description: "", current: chosen[id] ?? "", values: values.map((value) => ({ description: "", group: "", ...value })), change: (value) => ({ [id]: value }) }];
  const { model, options } = description?.agent_session ?? {};
  const own = {
    ...(description && { modes: description.modes }), mode: chosen.mode || "default", requested_model: chosen.model ?? "", requested_options: chosen.options ?? {},
  };
  return [
    ...setting("folder", "Folder", folders.map(({ path, name }) => ({ id: path, name, description: path }))),
    ...setting("agent", "Agent", [
      ...agents.map(({ name, title, description }) => ({ id: name, name, description: [title, description].filter((part) => part !== "" && part !== name).join(" ") })),
      ...(several === undefined ? [] : [{ id: severalChosen, name: several, description: "Each works on the prompt in its own git worktree" }]),
      ...(worktrees && !oneAgent && agents.length > 1 ? [{ id: askSeveral, name: "Several Agents…", description: "Send the prompt to several agents, and choose one of the results" }] : []),
    ]).map((of) => ({ ...of, ...(several !== undefined && { current: severalChosen }), change: (value: string) => (value === askSeveral ? { agents: [] } : { agent: value }) })),
    ...setting("worktree", "Place of work", worktrees && several === undefined ? (sends === undefined ? places : placesOn(sends)) : []).map((of) => ({ ...of, label: "Place" })),
    ...setting("sandbox", "Sandbox", sandboxes(description?.sandboxes ?? [], chosen.sandbox)),
    ...settingsOf(own, { model: { available: model?.available ?? [] }, options: (options ?? []).map((option) => ({ ...option, current: "" })) }),
  ];
}

/** Values of the agent's select box that no agent has as its name. */
const [severalChosen, askSeveral] = [" several", " ask"];

/** The places of work: whether the agent gets a git worktree. */
const places = [
  { id: "", name: "Default", description: "In the project, unless the configuration gives new sessions a worktree" },
  { id: "no", name: "In the project", description: "The agent works on your files" },
  { id: "yes", name: "In a worktree", description: "A directory outside of the project, on a new branch. Your files stay as they are until you land its changes" },
];

const sandboxWords: Record<Sandbox, { name: string; description: string }> = {
  "": { name: "No sandbox", description: "The agent can reach what you can reach, unless its configuration has a sandbox" },
  workspace: { name: "Sandbox", description: "The agent writes only in the project and in its own directories" },
  offline: { name: "Sandbox, offline", description: "The agent writes only in the project and in its own directories, and has no network" },
};

/** The sandboxes of a new session. A chosen one stays when another agent has none. */
function sandboxes(levels: readonly Sandbox[], chosen: Sandbox = ""): Array<{ id: Sandbox; name: string; description: string }> {
  const all = new Set<Sandbox>(["", ...levels, chosen]);
  return all.size === 1 ? [] : [...all].map((id) => ({ id, ...sandboxWords[id] }));
}

/** The places of work on a host to which the files of this machine can go. */
function placesOn(host: string): typeof places {
  return [
    { id: "", name: "With your files", description: `Your commit and your files go to ${host}, also the uncommitted ones. The agent works there in a worktree, and you land its changes here` },
    { id: "no", name: `In the project on ${host}`, description: `The agent works on the files of ${host}` },
    { id: "yes", name: `In a worktree on ${host}`, description: `A directory outside of the project on ${host}, on a new branch. It does not have your files` },
  ];
}

function valueOf(value: Data): SettingValue {
  const id = stringOf(value["id"]) ?? "";
  return { id, name: stringOf(value["name"]) ?? id, description: stringOf(value["description"]) ?? "", group: stringOf(value["group"]) ?? "" };
}

/** withCurrent adds the current value, if the agent does not list it. An empty one is the agent's default. */
function withCurrent(values: SettingValue[], current: string): SettingValue[] {
  return values.some(({ id }) => id === current) ? values : [{ id: current, name: current || "Default", description: "", group: values[0]?.group ?? "" }, ...values];
}

/** Select boxes for the settings, with their labels, below the prompt box. */
export class SettingsBar {
  readonly element = make("div", { class: "settings" });
  private readonly boxes = new Map<string, HTMLSelectElement>();
  private readonly note: HTMLElement;
  private readonly busy = new Set<string>();
  private readonly shown = new Map<string, string>();

  /** set changes a setting, and resolves with a note for the user. Rejects if the setting is unchanged. */
  constructor(
    note: HTMLElement,
    private readonly set: (setting: Setting, value: string) => Promise<string>,
  ) {
    this.note = note;
  }

  update(settings: readonly Setting[]): void {
    for (const [id, box] of this.boxes) {
      if (settings.some((setting) => setting.id === id)) continue;
      box.parentElement!.remove();
      this.boxes.delete(id);
      this.shown.delete(id);
    }
    for (const setting of settings) {
      if (this.busy.has(setting.id)) continue;
      const now = JSON.stringify(setting);
      if (this.shown.get(setting.id) === now) continue;
      this.shown.set(setting.id, now);
      this.draw(setting);
    }
  }

  private draw(setting: Setting): void {
    let box = this.boxes.get(setting.id);
    if (!box) {
      box = make("select", { is: { "aria-label": setting.name } });
      this.boxes.set(setting.id, box);
      this.element.append(make("label", { class: "setting" }, make("span", { class: "setting-name", text: setting.label ?? setting.name, tip: setting.name }), box));
    }
    const groups = new Map<string, SettingValue[]>();
    for (const value of setting.values) groups.set(value.group, [...(groups.get(value.group) ?? []), value]);
    const options = (values: SettingValue[]): HTMLOptionElement[] => values.map(({ id, name, description }) => make("option", { text: name, is: { value: id }, ...(description === "" ? {} : { tip: description }) }));
    box.replaceChildren(...(groups.size > 1 ? [...groups].map(([group, values]) => make("optgroup", { is: { label: group || "Other" } }, ...options(values))) : options(setting.values)));
    box.value = setting.current;
    const current = setting.values.find(({ id }) => id === setting.current);
    box.title = [`${setting.name}: ${current?.name ?? setting.current}`, current?.description, setting.description].filter(Boolean).join(" — ");
    box.onchange = () => void this.change(setting, box);
  }

  private async change(setting: Setting, box: HTMLSelectElement): Promise<void> {
    const value = box.value;
    this.busy.add(setting.id);
    box.setAttribute("aria-busy", "true");
    setText(this.note, "");
    try {
      setText(this.note, await this.set(setting, value));
    } catch (error) {
      box.value = setting.current;
      setText(this.note, `${setting.name} is unchanged: ${(error as Error).message}`);
    } finally {
      this.busy.delete(setting.id);
      box.removeAttribute("aria-busy");
      this.shown.delete(setting.id);
    }
  }
}

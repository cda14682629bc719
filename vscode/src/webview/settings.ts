// What an agent can be set to: its modes and Duet's, its models, and its own options.
import type { PanelParams } from "../panel/protocol";
import { objectOf, objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import type { SessionState } from "./session";

export interface SettingValue {
  id: string;
  name: string;
  description: string;
  /** Values of one group stand together. */
  group: string;
}

/** Something with several values, of which one is set. */
export interface Setting {
  id: string;
  name: string;
  description: string;
  current: string;
  values: SettingValue[];
  /** What session.set is asked for. */
  change(value: string): Omit<PanelParams<"session.set">, "session_id">;
}

export function settingsOf(session: SessionState, told: { model?: Data; options?: Data[] }): Setting[] {
  const settings: Setting[] = [];
  const known = objectOf(session.agent_session);
  const modes: SettingValue[] = (session.modes ?? []).map(({ id, name, description, by }) => ({ id, name: name || id, description: description ?? "", group: by === "agent" ? "The agent's" : "Duet's" }));
  const mode = session.requested_mode || session.permission_mode;
  if (modes.length > 0) settings.push({ id: "mode", name: "Mode", description: "", current: mode, values: withCurrent(modes, mode), change: (value) => ({ mode: value }) });
  const model = told.model ?? objectOf(known["model"]);
  const models = objectsOf(model["available"]).map(valueOf);
  const currentModel = session.requested_model || (stringOf(model["current"]) ?? "");
  if (models.length > 0) settings.push({ id: "model", name: "Model", description: "", current: currentModel, values: withCurrent(models, currentModel), change: (value) => ({ model: value }) });
  for (const option of told.options ?? objectsOf(known["options"])) {
    const id = stringOf(option["id"]);
    const values = objectsOf(option["values"]).map(valueOf);
    // The mode and the model are among the options, too.
    if (id === undefined || values.length === 0 || /^(?:mode|model)$/.test(stringOf(option["category"]) ?? "")) continue;
    const current = session.requested_options?.[id] ?? stringOf(option["current"]) ?? "";
    settings.push({ id: `option-${id}`, name: stringOf(option["name"]) ?? id, description: stringOf(option["description"]) ?? "", current, values: withCurrent(values, current), change: (value) => ({ options: { [id]: value } }) });
  }
  return settings;
}

function valueOf(value: Data): SettingValue {
  const id = stringOf(value["id"]) ?? "";
  return { id, name: stringOf(value["name"]) ?? id, description: stringOf(value["description"]) ?? "", group: stringOf(value["group"]) ?? "" };
}

/** withCurrent has the current value, also where the agent does not list it. */
function withCurrent(values: SettingValue[], current: string): SettingValue[] {
  return values.some(({ id }) => id === current) ? values : [{ id: current, name: current || "as the agent has it", description: "", group: values[0]?.group ?? "" }, ...values];
}

// Boxes to choose the agent's mode, model and options in.
import { make, setText } from "./dom";
import type { Setting, SettingValue } from "./settings";

export class SettingsBar {
  readonly element = make("div", { class: "settings" });
  private readonly boxes = new Map<string, HTMLSelectElement>();
  private readonly note: HTMLElement;
  private readonly busy = new Set<string>();
  private readonly shown = new Map<string, string>();

  /** set changes a setting, and says what a person has to know of it. Rejects with why it is as it was. */
  constructor(
    note: HTMLElement,
    private readonly set: (setting: Setting, value: string) => Promise<string>,
  ) {
    this.note = note;
  }

  update(settings: readonly Setting[]): void {
    for (const [id, box] of this.boxes) {
      if (settings.some((setting) => setting.id === id)) continue;
      box.remove();
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
      this.element.append(box);
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
      setText(this.note, `${setting.name} stays as it was: ${(error as Error).message}`);
    } finally {
      this.busy.delete(setting.id);
      box.removeAttribute("aria-busy");
      this.shown.delete(setting.id);
    }
  }
}

// The pairing of a device by a code that duet-rpc web shows on its terminal.
import { make, setText } from "../webview/dom";
import type { Paired } from "./protocol";

/** A name for this device, from what the browser says about itself. */
export function deviceName(agent: string): string {
  if (agent.includes("iPhone")) return "iPhone";
  if (agent.includes("iPad")) return "iPad";
  if (agent.includes("Android")) return agent.includes("Mobile") ? "Android phone" : "Android tablet";
  if (agent.includes("Macintosh")) return "Mac";
  if (agent.includes("Windows")) return "Windows PC";
  if (agent.includes("CrOS")) return "Chromebook";
  return agent.includes("Linux") ? "Linux PC" : "Browser";
}

/** The form that pairs this device. */
export class Pairing {
  readonly element: HTMLElement;
  private readonly code = make("input", { is: { type: "text", id: "code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: "false", required: "", "aria-describedby": "pairing-failure" } });
  private readonly name = make("input", { is: { type: "text", id: "name", dir: "auto", maxlength: "60", required: "" } });
  private readonly failure = make("p", { class: "failure", is: { role: "alert", id: "pairing-failure" } });
  private busy = false;

  /** why: why the device is not paired any more. */
  constructor(
    private readonly paired: (paired: Paired) => Promise<void>,
    { code = "", why = "" }: { code?: string; why?: string },
  ) {
    this.code.value = code;
    this.name.value = deviceName(navigator.userAgent);
    this.element = make("main", { class: "page pairing" },
      make("h1", { text: "Duet", is: { tabindex: "-1" } }),
      why !== "" && make("p", { class: "warning", text: why }),
      make("p", { text: "Pair this device with the code that duet-rpc web shows on its terminal." }),
      make("form", { on: { submit: (event) => {
        event.preventDefault();
        void this.pair();
      } } },
      make("label", { text: "Code", is: { for: "code" } }), this.code,
      make("label", { text: "Name of this device", is: { for: "name" } }), this.name,
      make("button", { class: "primary", is: { type: "submit" }, text: "Pair" }), this.failure),
    );
  }

  focus(): void {
    (this.code.value === "" ? this.code : this.name).focus();
  }

  private async pair(): Promise<void> {
    const [code, name] = [this.code.value.trim(), this.name.value.trim()];
    if (this.busy || code === "" || name === "") return;
    this.busy = true;
    setText(this.failure, "");
    try {
      const response = await fetch("pair", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code, name }) });
      const answer = (await response.json().catch(() => ({}))) as Partial<Paired> & { error?: string };
      if (!response.ok || answer.key === undefined || answer.device === undefined) throw new Error(answer.error ?? `duet-rpc answered ${response.status}`);
      await this.paired({ key: answer.key, device: answer.device });
    } catch (error) {
      const words = error instanceof TypeError ? "duet-rpc cannot be reached" : (error as Error).message;
      setText(this.failure, `The device was not paired: ${words}`);
      this.code.select();
    } finally {
      this.busy = false;
    }
  }
}


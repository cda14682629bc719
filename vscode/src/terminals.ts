// Shows terminals of the daemon as terminals of VS Code.
import * as vscode from "vscode";
import { labelOf, nameOf, visible } from "./hub/groups";
import type { Session } from "./hub/model";
import { onHost } from "./hub/host";
import { HubTerminal } from "./hub/terminal";
import type { Which } from "./hub/terminal";
import { inform } from "./messages";
import type { Terminal } from "./protocol";
import { startFolder, workingDirectory } from "./projects";
import type { Project, ProjectSession } from "./projects";

type Listed = Terminal;

/** Opens terminals, and closes their views with the extension. */
export class Terminals implements vscode.Disposable {
  private readonly shown = new Set<HubTerminal>();

  constructor(private readonly onError: (error: unknown) => void) {}

  /** Opens a new shell in the project, in the folder of the active editor. */
  create(project: Project): void {
    const cwd = workingDirectory(project, startFolder(project).uri.fsPath);
    this.show(project, { start: cwd === undefined ? {} : { cwd } }, "Duet", "terminal");
  }

  /** Watches a terminal that the user picks. With a session: one of its agent's terminals. */
  async watch(project: Project, session?: ProjectSession["session"]): Promise<void> {
    const { terminals } = await project.connection.request("terminal.list", {});
    const of = session ? terminals.filter(isOf(session)) : terminals;
    const first = of[0];
    if (!first) {
      void inform(session ? `no terminal of “${nameOf(session)}” runs` : "no terminal runs; Duet: New Terminal opens one");
      return;
    }
    const chosen = of.length === 1 && session ? first : await choose(of, project);
    if (chosen) this.show(project, { attach: chosen.terminal_id }, programOf(chosen), chosen.read_only ? "eye" : "terminal");
  }

  dispose(): void {
    for (const terminal of this.shown) terminal.dispose();
  }

  private show(project: Project, which: Which, name: string, icon: string): void {
    const terminal = new HubTerminal(project.connection, which);
    this.shown.add(terminal);
    const written = new vscode.EventEmitter<string>();
    const closed = new vscode.EventEmitter<number>();
    terminal.onOutput((text) => written.fire(text));
    let ended = false;
    terminal.onEnd(({ code, reason }) => {
      ended = true;
      this.shown.delete(terminal);
      if (code === 0) closed.fire(0);
      else written.fire(`\r\n\u001b[31m[${visible(reason)}; press a key to close]\u001b[0m\r\n`);
    });
    const pty: vscode.Pseudoterminal = {
      onDidWrite: written.event,
      onDidClose: closed.event,
      open: (size) => void terminal.open(size && { cols: size.columns, rows: size.rows }).then(() => {
        if (terminal.readOnly) written.fire("\u001b[2m[an agent's terminal: you watch, and cannot type]\u001b[0m\r\n");
      }),
      close: () => {
        this.shown.delete(terminal);
        terminal.close().catch(this.onError);
      },
      handleInput: (data) => {
        if (ended) closed.fire(0); // the reason is on the screen
        else terminal.write(data).catch(this.onError);
      },
      setDimensions: ({ columns, rows }) => void terminal.resize({ cols: columns, rows }).catch(this.onError),
    };
    vscode.window.createTerminal({ name: `${name}${onHost(project.host)}`, pty, iconPath: new vscode.ThemeIcon(icon) }).show();
  }
}

/** isOf matches the terminals of a session's agent, whichever of its turns started them. */
function isOf({ session }: Session): (terminal: Listed) => boolean {
  return ({ turn }) => turn?.split(".")[0] === String(session);
}

function programOf({ program, args }: Listed): string {
  return visible([program.replace(/^.*[/\\]/, ""), ...args].join(" ")).slice(0, 60);
}

async function choose(list: Listed[], project: Project): Promise<Listed | undefined> {
  const items = list.map((terminal) => {
    const session = project.model.sessions.find((one) => isOf(one)(terminal));
    return {
      label: `$(${terminal.read_only ? "eye" : "terminal"}) ${programOf(terminal)}`,
      description: [session ? labelOf(session, terminal.turn) : "", terminal.read_only ? "an agent's, to be watched" : "", terminal.taken ? "taken by another program" : ""].filter((part) => part !== "").join(" · "),
      detail: visible(terminal.cwd),
      terminal,
    };
  });
  return (await vscode.window.showQuickPick(items, { title: "Which terminal?", matchOnDescription: true }))?.terminal;
}

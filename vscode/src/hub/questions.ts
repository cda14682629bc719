// Questions: their titles and details, the possible answers, and the decisions that answers become.
import { answers } from "../protocol";
import type { DecisionScope, Params } from "../protocol";
import type { Question } from "./model";
import { clipped, exactly, short } from "./groups";
import { fenceFor } from "./transcript";

export type Decision = Omit<Params<"approval.decide">, "approval">;

/** The input that an answer needs from the user. */
export type Needs =
  | { words: string } // a prompt for text, which becomes the comment
  | { rule: { text: string; pattern?: string } } // the user sees what the rule allows, and may change its pattern
  | { edit: true } // an editor with the tool's input
  | { form: FormField[] } // fields, whose values become the content
  | { open: string }; // a URL to open first

/** A possible answer. */
export interface Choice {
  id: string;
  label: string;
  /** The key that gives the answer while the question has the focus. Every client has the same keys. */
  key?: string;
  /** What the answer does, in a sentence. */
  meaning?: string;
  /** The scope of the answer, if it is more than this question. */
  detail?: string;
  icon: string;
  decision: Decision;
  needs?: Needs;
}

/** A field of a form. */
export interface FormField {
  name: string;
  label: string;
  description: string;
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "json";
  required: boolean;
  default?: unknown;
  choices: Array<{ value: string; label: string }>;
  /** The range of a number, or of a text's length in characters. */
  limits?: { least?: number; most?: number };
}

type RuleScope = Exclude<DecisionScope, "once">;

/** The scopes of rules, in the order of their choices. */
const ruleScopes: readonly RuleScope[] = ["session", "project"];

/** named returns the words, the key and the meaning of an answer, which are the same in every client. */
function named(name: keyof typeof answers): Pick<Choice, "label" | "key" | "meaning"> {
  const { words: label, key, meaning } = answers[name];
  return { label, key, meaning };
}

/** The reason in a denial without the user's own. An agent always gets a reason. */
export function plainDenial(client = "VS Code"): string {
  return `Denied in ${client}`;
}

/** The possible answers to a question. The one that lets the agent continue is first. */
export function choicesOf(question: Question): Choice[] {
  return question.type === "human_contact" ? answersOf(question) : permissionsOf(question);
}

/** Whether the extension can send an answer without further input. */
export function isComplete({ needs }: Choice): boolean {
  return needs === undefined;
}

function permissionsOf(question: Question): Choice[] {
  const choices: Choice[] = [{ id: "approve", ...named("allow"), icon: "check", decision: { decision: "approve" } }];
  choices.push({ id: "deny", ...named("deny"), icon: "close", decision: { decision: "deny", comment: plainDenial() } });
  choices.push({ id: "deny-why", ...named("tell"), icon: "comment", decision: { decision: "deny", tell: true }, needs: { words: "Why not? The agent gets the reason." } });
  for (const scope of ruleScopes) {
    const rule = question.rule_preview?.[scope];
    if (rule) {
      choices.push({ id: `approve-${scope}`, ...named(scope), detail: exactly(rule.text), icon: "check-all", decision: { decision: "approve", scope }, needs: { rule: { text: rule.text, ...(rule.pattern && { pattern: rule.pattern }) } } });
    }
  }
  // Programs may read an ambiguous input differently, so an edit of one reading could change another.
  if (question.input_editable && !question.input_ambiguity) choices.push({ id: "edit", ...named("edit"), icon: "edit", decision: { decision: "approve" }, needs: { edit: true } });
  return choices;
}

function answersOf(question: Question): Choice[] {
  const choices: Choice[] = [];
  if (question.mode === "form") {
    choices.push({ id: "fill", label: "Fill in", icon: "edit", decision: { decision: "respond" }, needs: { form: fieldsOf(question.schema) } });
  } else if (question.mode === "url" && question.url) {
    choices.push({
      id: "open", label: "Open in the browser", detail: [question.url, ...(question.url_warnings ?? [])].map(exactly).join(" — "), icon: "link-external",
      decision: { decision: "respond" }, needs: { open: question.url },
    });
  } else {
    for (const [i, option] of optionsOf(question).entries()) {
      choices.push({ id: `option-${option.id}`, label: short(option.label), ...(i < 9 && { key: String(i + 1) }), icon: "circle-outline", decision: { decision: "respond", option: option.id } });
    }
    if (!question.options_only) choices.push({ id: "respond", label: "Answer", icon: "comment", decision: { decision: "respond" }, needs: { words: titleOf(question) } });
  }
  if (question.mode || question.declinable) choices.push({ id: "deny", label: "Decline", key: answers.deny.key, meaning: "The agent gets no answer.", icon: "close", decision: { decision: "deny", comment: plainDenial() } });
  return choices;
}

function optionsOf(question: Question): Array<{ id: string; label: string }> {
  if (!Array.isArray(question.options)) return [];
  return (question.options as Array<Record<string, unknown>>).flatMap((option) => {
    const id = text(option["option_id"]) || text(option["name"]);
    return id === "" ? [] : [{ id, label: text(option["title"]) || text(option["name"]) || id }];
  });
}

/** The fields of a form. The schema is a flat JSON Schema object, as in the Agent Client Protocol's elicitation. */
export function fieldsOf(schema: unknown): FormField[] {
  const { properties, required } = object(schema);
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  return Object.entries(object(properties)).map(([name, of]) => {
    const field = object(of);
    const choices = valuesOf(field);
    const several = field["type"] === "array" ? valuesOf(object(field["items"])) : [];
    const kind = ((): FormField["kind"] => {
      switch (field["type"]) {
        case "string":
          return choices.length > 0 ? "choice" : "text";
        case "number":
        case "integer":
        case "boolean":
          return field["type"];
        default:
          return several.length > 0 ? "choices" : "json";
      }
    })();
    return {
      name, kind, label: text(field["title"]) || name, description: text(field["description"]), required: needed.has(name), default: field["default"],
      choices: kind === "choices" ? several : choices, limits: kind === "text" ? limitsOf(field["minLength"], field["maxLength"]) : limitsOf(field["minimum"], field["maximum"]),
    };
  });
}

function valuesOf(schema: Record<string, unknown>): FormField["choices"] {
  const titled = schema["oneOf"] ?? schema["anyOf"];
  if (Array.isArray(titled)) {
    return titled.map(object).flatMap((option) => (typeof option["const"] === "string" ? [{ value: option["const"], label: text(option["title"]) || option["const"] }] : []));
  }
  const names = Array.isArray(schema["enumNames"]) ? (schema["enumNames"] as unknown[]) : [];
  return Array.isArray(schema["enum"]) ? schema["enum"].filter((value) => typeof value === "string").map((value, i) => ({ value, label: text(names[i]) || value })) : [];
}

function limitsOf(least: unknown, most: unknown): { least?: number; most?: number } {
  return { ...(typeof least === "number" ? { least } : {}), ...(typeof most === "number" ? { most } : {}) };
}

/** within throws an error for the user unless a number is between the limits of a field. */
function within(of: number, { label, limits: { least = -Infinity, most = Infinity } = {} }: FormField, unit = ""): void {
  if (of >= least && of <= most) return;
  const words = least === -Infinity ? `at most ${most}` : most === Infinity ? `at least ${least}` : `from ${least} to ${most}`;
  throw new Error(unit === "" ? `${label} has to be ${words}` : `${label} has to have ${words} ${unit}`);
}

/** Parses the typed value of a field. undefined: the field is left out. Throws if the value is invalid. */
export function valueOf(field: FormField, typed: string): unknown {
  if (typed.trim() === "" && !(field.required && field.kind === "text")) {
    if (field.required) throw new Error(`${field.label} is needed`);
    return undefined;
  }
  switch (field.kind) {
    case "number":
    case "integer": {
      const value = Number(typed);
      if (!Number.isFinite(value) || (field.kind === "integer" && !Number.isInteger(value))) throw new Error(`${field.label} has to be ${field.kind === "integer" ? "a whole number" : "a number"}`);
      within(value, field);
      return value;
    }
    case "json":
      try {
        return JSON.parse(typed) as unknown;
      } catch {
        throw new Error(`${field.label} has to be JSON`);
      }
    default:
      within(Array.from(typed).length, field, "characters");
      return typed;
  }
}

/** The title of a question, in one line. */
export function titleOf(question: Question): string {
  return short(question.title || question.tool_name, 120);
}

/** The details of a question, as Markdown in which third-party text is escaped. */
export function detailsOf(question: Question): string {
  const parts: string[] = [];
  if (question.title) parts.push(code(question.title));
  if (question.subject) parts.push(code(question.subject));
  if (question.reopened) parts.push(escaped(question.reopened));
  else if (question.stale) parts.push("Its agent has ended: an answer continues it.");
  if (question.input_ambiguity) parts.push(`**${escaped(question.input_ambiguity)}**`);
  if (question.truncated) parts.push("Parts of this question are too long to show.");
  for (const text of [question.plan, question.details]) if (text) parts.push(code(text));
  if (question.diff) parts.push(code(question.diff, "diff"));
  else if (question.type === "function_call" && question.tool_input !== undefined) parts.push(code(JSON.stringify(question.tool_input, null, 2), "json"));
  return parts.join("\n\n");
}

/** The longest text of a code block, in characters. The panel shows the whole text. */
const longestCode = 20_000;

/** code returns a fenced block that its text cannot end. */
function code(of: string, language = ""): string {
  const shown = clipped(of, longestCode);
  const fence = fenceFor(shown);
  return `${fence}${language}\n${exactly(shown)}\n${fence}`;
}

function escaped(of: string): string {
  return exactly(of).replace(/[\\`*_{}[\]()#+\-.!<>|~&]/g, "\\$&");
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

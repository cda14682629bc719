// The places in files that the output of tools names: FILE:LINE, FILE:LINE:COLUMN and FILE(LINE,COLUMN).

export interface Location {
  path: string;
  /** From 1. */
  line: number;
  column?: number;
  /** Where its name begins and ends in the text. */
  start: number;
  end: number;
}

/** How many places are looked for: more are of no use to anybody, and each asks the disk for its file. */
const most = 2_000;

// One expression for path and place would read a long line anew from each of its characters.
const run = /[\w@+~./\\-]+/g;
const place = /:(\d+)(?::(\d+))?|\((\d+)(?:,(\d+))?\)/y;

export function locations(text: string): Location[] {
  const found: Location[] = [];
  for (run.lastIndex = 0; found.length < most; ) {
    const match = run.exec(text);
    if (!match) break;
    const behind = match.index + match[0].length;
    place.lastIndex = behind;
    const at = place.exec(text);
    if (!at) continue;
    run.lastIndex = place.lastIndex;
    const start = startOf(text, match.index, behind);
    if (start === undefined || !endsAsName(text, start, behind)) continue;
    const path = text.slice(start, behind);
    if (!/[./\\]/.test(path)) continue; // a time, or a port
    const [line, column] = [at[1] ?? at[3], at[2] ?? at[4]];
    found.push({ path, line: Number(line), ...(column ? { column: Number(column) } : {}), start, end: run.lastIndex });
  }
  run.lastIndex = 0;
  return found;
}

/** startOf is where the path begins that a run of its characters is, with its drive; undefined: it belongs to what is before. */
function startOf(text: string, from: number, to: number): number | undefined {
  if (text[from - 1] !== ":") return from;
  const isDrive = /[\\/]/.test(text[from]!) && /[A-Za-z]/.test(text[from - 2] ?? "") && !/[\w/\\.:-]/.test(text[from - 3] ?? " ");
  if (isDrive) return from - 2;
  for (let at = from; at < to; at++) if (/[@+~]/.test(text[at]!)) return at + 1;
  return undefined;
}

/** Whether the end of a run is the end of a name: two characters at least, with a dot between them or none. */
function endsAsName(text: string, from: number, to: number): boolean {
  return /[\w-]\.?[\w-]$/.test(text.slice(Math.max(from, to - 3), to));
}

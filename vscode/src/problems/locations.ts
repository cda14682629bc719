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

const place = /(?<![\w/\\.:-])((?:[A-Za-z]:[\\/])?[\w@+~./\\-]*[\w-]\.?[\w-]+)(?::(\d+)(?::(\d+))?|\((\d+)(?:,(\d+))?\))/g;

export function locations(text: string): Location[] {
  const found: Location[] = [];
  for (const match of text.matchAll(place)) {
    const [whole, path, line, column, lineInParentheses, columnInParentheses] = match;
    if (path === undefined || !/[./\\]/.test(path)) continue; // a time, or a port
    const [l, c] = [line ?? lineInParentheses, column ?? columnInParentheses];
    found.push({ path, line: Number(l), ...(c ? { column: Number(c) } : {}), start: match.index, end: match.index + whole.length });
    if (found.length === most) break;
  }
  return found;
}

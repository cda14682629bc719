// Numbers, as a person reads them.

/** A time in milliseconds: 4s, 1m 05s, 2h 03m. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000));
  const two = (number: number): string => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h ${two(Math.floor((seconds % 3_600) / 60))}m`;
}

/** A count: 999, 1.2k, 45k, 1.3M. */
export function thousands(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 9_950) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** An amount in US dollars. */
export function money(dollars: number): string {
  return dollars < 0.01 ? "< $0.01" : `$${dollars.toFixed(2)}`;
}

// Where the project of a folder is.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The directory of the project that a folder is in: the nearest one in which a hub keeps its state, else the folder. */
export function projectRoot(folder: string, exists: (path: string) => boolean = existsSync): string {
  for (let at = folder; ; at = dirname(at)) {
    if (exists(join(at, ".duet"))) return at;
    if (dirname(at) === at) return folder;
  }
}

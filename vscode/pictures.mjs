// Puts the pictures of the README, which the tests in test/host have made, into media/readme.
import { copyFileSync, mkdirSync, statSync } from "node:fs";

/** Bytes of a picture: a page of the marketplace is loaded by phones, too. */
const most = 120_000;

mkdirSync("media/readme", { recursive: true });
for (const name of ["question", "notification", "changes", "preview"]) {
  const picture = `out/pictures/${name}.png`;
  const { size } = statSync(picture);
  if (size > most) throw new Error(`${picture} has ${size} bytes, and may have ${most}: show less in it`);
  copyFileSync(picture, `media/readme/${name}.png`);
}

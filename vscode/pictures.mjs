// Copies the pictures of this README and of the repository's, which the tests in test/host have made, into media/readme.
import { copyFileSync, mkdirSync, statSync } from "node:fs";

/** The most bytes that each picture may have: phones load these pages, too. */
const most = { together: 200_000, question: 120_000, notification: 120_000, changes: 120_000, preview: 120_000 };

mkdirSync("media/readme", { recursive: true });
for (const [name, limit] of Object.entries(most)) {
  const picture = `out/pictures/${name}.png`;
  const { size } = statSync(picture);
  if (size > limit) throw new Error(`${picture} has ${size} bytes, and may have ${limit}: show less in it`);
  copyFileSync(picture, `media/readme/${name}.png`);
}

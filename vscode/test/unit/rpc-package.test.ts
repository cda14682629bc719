// The library is a separate package: the files that npm would publish work without the rest.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

test("the package that npm would publish can be used by itself", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "duet-rpc-package-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const packed = execFileSync("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", folder], { cwd: "src/rpc", encoding: "utf8" });
  // npm prints the name of the file; output of its scripts may precede it.
  const tarball = /"filename": "([^"]+)"/.exec(packed)?.[1];
  assert.ok(tarball, packed);
  const home = join(folder, "node_modules", "@duet-rpc", "rpc");
  mkdirSync(home, { recursive: true });
  execFileSync("tar", ["xzf", join(folder, tarball), "-C", home, "--strip-components=1"]);
  const program = `
    import { JSONRPCClient, JSONRPCServer, portTransport } from "@duet-rpc/rpc";
    const { port1, port2 } = new MessageChannel();
    const server = new JSONRPCServer(portTransport(port1));
    server.method("ping", () => "pong");
    const client = new JSONRPCClient(portTransport(port2));
    console.log(await client.request("ping"));
    client.destroy();`;
  assert.equal(execFileSync("node", ["--input-type=module", "-e", program], { cwd: folder, encoding: "utf8" }), "pong\n");
  const files = execFileSync("tar", ["tzf", join(folder, tarball)], { encoding: "utf8" }).split("\n");
  for (const file of ["README.md", "LICENSE"]) assert.ok(files.includes(`package/${file}`), `${file} is in ${files.join(" ")}`);
  assert.equal(readFileSync(join(home, "LICENSE"), "utf8"), readFileSync("../LICENSE", "utf8"));
});
